"""Real incidents: cases of public data sets, played as simulated ones are, and rules that rank."""
