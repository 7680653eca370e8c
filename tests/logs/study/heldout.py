"""Incidents kept apart from the reader, for one last score."""

from no_root_log import STORIES as NO_ROOT_LOG
from odd import STORIES as ODD
from own_fault import STORIES as OWN_FAULT
from story import Case, tell

CASES: list[Case] = [tell(story) for story in [*OWN_FAULT, *NO_ROOT_LOG, *ODD]]
