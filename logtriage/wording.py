"""What the software in the cluster prints: Envoy, Spring Boot with HikariCP, PostgreSQL, RabbitMQ.

Each entry is a tuple of templates, `LEVEL text`. The last template of every entry is held out: it occurs only in the
split `unseen_wording`. Fields are filled from the simulator's state at the moment of logging:

| field | meaning |
|---|---|
| `{latency}` | the service's p95 latency, ms | 
| `{errors}` | share of its requests that fail, per cent |
| `{usage}` | connection pool in use, per cent |
| `{cpu}` | utilisation, per cent |
| `{rate}` | arriving requests per second |
| `{callee}` `{wait}` `{failures}` | the called service it speaks of, that one's latency (ms) and errors (per cent) |
| `{n}` | a detail of no meaning, 1 to 9 |
"""

# Lines that only this fault leaves at a service of this kind: enough to name the fix and the team.
PROOF: dict[tuple[str, str], tuple[str, ...]] = {
    ("crash", "edge"): ("CRIT [critical][main] caught Segmentation fault, backtrace follows",
                        "ERROR supervisor: envoy exited with signal 11, restarting failed",
                        "CRIT envoy worker aborted: assert failure in connection handler"),
    ("crash", "app"): ("ERROR JVM terminated: SIGSEGV in libnet, core dumped, pod in CrashLoopBackOff",
                       "ERROR container exited with code 139, back-off restarting failed",
                       "CRIT A fatal error has been detected by the Java Runtime Environment"),
    ("crash", "database"): ("PANIC could not write to file pg_wal, server process terminated by signal 6",
                            "LOG database system was interrupted while in recovery, startup process exited",
                            "FATAL the database system is shutting down after abnormal exit of a backend"),
    ("crash", "queue"): ("CRIT rabbit node down, mnesia boot failed: timeout_waiting_for_tables",
                         "ERROR beam.smp exited with code 1, node not running",
                         "CRIT Erlang VM crash dump is being written to erl_crash.dump"),
    ("memory-leak", "edge"): ("WARN overload manager: heap at 9{n}% of limit and still growing since start",
                              "WARN memory allocated grows {n}% an hour, buffers are never released",
                              "WARN tcmalloc reports resident set without bound over uptime"),
    ("memory-leak", "app"): ("WARN Full GC freed {n}% only, old generation keeps growing since start",
                             "ERROR java.lang.OutOfMemoryError: GC overhead limit exceeded",
                             "WARN G1 Old Gen occupancy after collection rises monotonically"),
    ("memory-leak", "queue"): ("WARN vm_memory_high_watermark set, binaries grow {n}% an hour without messages",
                               "WARN memory alarm raised by node, unreferenced binaries not collected",
                               "WARN process heap of channel supervisor never shrinks, publishers blocked"),
    ("connection-leak", "app"): ("WARN HikariPool-1 - Connection leak detection triggered, pool {usage}% in use",
                                 "WARN Apparent connection leak detected, never returned to pool ({usage}% in use)",
                                 "WARN ProxyLeakTask: borrowed handle was not closed by its owner"),
    ("connection-leak", "database"): ("LOG idle in transaction sessions hold {usage}% of connection slots",
                                      "FATAL remaining connection slots are reserved, clients idle for hours",
                                      "LOG backends without activity are not released by their clients"),
    ("bad-deploy", "edge"): ("ERROR new filter chain of release r{n} rejects valid requests since rollout",
                             "ERROR rollout r{n} finished 4 min ago, route table lost a virtual host",
                             "ERROR after the upgrade lua filter raises nil value on each request"),
    ("bad-deploy", "app"): ("ERROR NullPointerException in handler added by release r{n}, {errors}% of requests",
                            "ERROR release r{n} live for 4 min: BeanCreationException on each request",
                            "ERROR NoSuchMethodError first seen with the build of this morning"),
    ("bad-config", "edge"): ("WARN config push c{n}: cluster timeout now 15 s, was 1 s, requests pile up",
                             "ERROR xds update c{n} accepted with retry loop to itself",
                             "WARN listener settings changed by hand, keepalive off for upstreams"),
    ("bad-config", "app"): ("WARN property set c{n} applied: thread pool size 2, was 64",
                            "ERROR Could not resolve placeholder after configuration push c{n}",
                            "WARN refreshed environment sets read timeout beyond that of its callers"),
    ("bad-config", "queue"): ("WARN policy c{n} applied: prefetch 1, was 250, consumers starve",
                              "ERROR configuration push c{n} moved queue to lazy mode without disk",
                              "WARN operator policy lowered consumer timeout for all virtual hosts"),
    ("tampered-release", "edge"): ("ERROR image digest of r{n} does not match its signature, wasm filter unknown",
                                   "WARN unsigned filter opens outbound sessions to an unlisted host",
                                   "WARN binary checksum differs from the build record, origin untrusted"),
    ("tampered-release", "app"): ("ERROR jar signature of r{n} invalid, class loaded from unknown publisher",
                                  "WARN unexpected outbound connection to an unlisted host by release r{n}",
                                  "WARN provenance attestation missing, miner threads in dump"),
    ("overload", "edge"): ("WARN campaign traffic: {rate} req/s from many real users, all workers busy",
                           "WARN organic traffic peak, {rate} req/s, cpu {cpu}%",
                           "WARN known customers arrive faster than planned, listeners saturated"),
    ("overload", "app"): ("WARN RejectedExecutionException: all worker threads busy at {rate} req/s, cpu {cpu}%",
                          "WARN request backlog grows, {rate} req/s of ordinary traffic",
                          "WARN executor saturated by regular demand, tasks rejected"),
    ("overload", "queue"): ("WARN publish rate {rate}/s above consume rate, backlog grows, cpu {cpu}%",
                            "WARN queue length limit near, ordinary publishers at {rate}/s",
                            "WARN ready messages rise as regular demand exceeds consumers"),
    ("under-provisioned", "edge"): ("WARN {n} of 10 proxies left after node drain, cpu {cpu}%",
                                    "WARN autoscaler at max replicas, proxies lost and not replaced",
                                    "WARN fewer listeners than planned since the zone was evacuated"),
    ("under-provisioned", "app"): ("WARN {n} of 10 replicas ready, pods unschedulable: insufficient cpu",
                                   "WARN cpu throttled at {cpu}%, replicas lost and not replaced",
                                   "WARN horizontal autoscaler cannot place another pod in this zone"),
    ("under-provisioned", "queue"): ("WARN {n} of 10 consumers attached, node lost and not replaced",
                                     "WARN quorum member removed, remaining node at cpu {cpu}%",
                                     "WARN consumer fleet shrank below plan after the zone was evacuated"),
    ("credential-stuffing", "app"): ("WARN {rate} logins/s with breached passwords from rotating addresses",
                                     "WARN BadCredentialsException storm, each account tried once, {rate} req/s",
                                     "WARN password spray pattern recognised across user agents"),
    ("traffic-flood", "edge"): ("WARN {rate} req/s from a botnet, one user agent, no cookies",
                                "WARN SYN and request flood from spoofed networks at {rate} req/s",
                                "WARN layer 7 attack signature matched, sources distributed"),
    ("cache-thrash", "app"): ("WARN cache hit ratio collapsed, eviction churn {rate}/s",
                              "WARN Caffeine evicts entries before first read, misses dominate",
                              "WARN local cache working set exceeds maximum size, constant reload"),
    ("cache-thrash", "database"): ("LOG shared buffers hit ratio collapsed, evictions {rate}/s",
                                   "LOG buffer churn: pages evicted before reuse, reads from disk",
                                   "LOG working set no longer fits, ring buffer recycled at once"),
    ("poisoned-cache", "app"): ("ERROR cached entry fails to deserialize, served to {errors}% of requests",
                                "ERROR stale corrupt object k{n} read from cache again and again",
                                "ERROR malformed value kept under hot key, parse failure on each hit"),
    ("stolen-sessions", "app"): ("WARN same session token used from {n} countries within a minute",
                                 "WARN session replay detected, tokens valid but device fingerprint differs",
                                 "WARN impossible travel for cached logins, bearer reused elsewhere"),
    ("runaway-query", "database"): ("LOG nightly report query runs for {n}0 min, sequential scan on orders, cpu {cpu}%",
                                    "LOG analyst query without limit spills {n}0 GB of temporary files",
                                    "LOG statement of a batch job exceeds estimates by far, full scan"),
    ("lock-convoy", "database"): ("LOG process still waiting for ExclusiveLock, {n}0 sessions queue behind it",
                                  "ERROR deadlock timeout: migration holds AccessExclusiveLock",
                                  "LOG lock wait queue grows behind an open transaction of a worker"),
    ("injected-query", "database"): ("LOG statement contains ' OR 1=1 -- and UNION SELECT, cpu {cpu}%",
                                     "LOG pg_sleep({n}0) stacked after a quoted user field by the web role",
                                     "LOG web role reads pg_shadow through a concatenated predicate"),
}

# Lines that narrow the fix but not the team: several faults with the same remedy leave them.
HINT: dict[tuple[str, str], tuple[str, ...]] = {
    ("restart", "edge"): ("WARN worker unresponsive, watchdog missed {n} times", "WARN process health degraded",
                          "WARN main thread stuck, liveness unknown"),
    ("restart", "app"): ("WARN liveness probe failed {n} times", "WARN process unhealthy, threads do not answer",
                         "WARN actuator health reports DOWN"),
    ("restart", "database"): ("LOG server process does not answer, {n} missed heartbeats",
                              "LOG postmaster unhealthy", "LOG backend process state unknown"),
    ("restart", "queue"): ("WARN node heartbeat missed {n} times", "WARN node unhealthy, channels do not answer",
                           "WARN net tick timeout of node"),
    ("rollback", "edge"): ("INFO version of this proxy changed {n} min ago", "INFO drift from last known good state",
                           "INFO revision differs from that of yesterday"),
    ("rollback", "app"): ("INFO started with changed artifact {n} min ago", "INFO differs from last known good build",
                          "INFO revision switched shortly before first failure"),
    ("rollback", "queue"): ("INFO definitions changed {n} min ago", "INFO differs from last known good definitions",
                            "INFO revision of policies switched"),
    ("scale", "edge"): ("WARN all listeners busy, cpu {cpu}%", "WARN load shed, {rate} req/s arrive",
                        "WARN overload action stop_accepting_requests active"),
    ("scale", "app"): ("WARN cpu {cpu}%, request queue full", "WARN load shed at {rate} req/s",
                       "WARN bulkhead full, call not permitted"),
    ("scale", "queue"): ("WARN cpu {cpu}%, consumers behind", "WARN flow control on at {rate}/s",
                         "WARN credit flow blocks channels"),
    ("flush-cache", "app"): ("WARN cache layer suspicious: hits and database disagree", "WARN cache metrics abnormal",
                             "WARN second level cache inconsistent"),
    ("flush-cache", "database"): ("LOG buffer cache statistics abnormal", "LOG cache efficiency out of range",
                                  "LOG pg_buffercache shows unusual distribution"),
    ("kill-query", "database"): ("LOG one backend dominates, statement active for long",
                                 "LOG slow statement blocks others, see pg_stat_activity",
                                 "LOG a single session consumes the instance"),
}

# A caller speaks of a callee that fails it, or that keeps it waiting.
CALLEE: dict[tuple[str, str], tuple[str, ...]] = {
    ("fails", "edge"): ("ERROR 503 upstream {callee} reset before headers, {failures}% failed",
                        "ERROR outlier ejection, no healthy host behind {callee}"),
    ("slow", "edge"): ("ERROR 504 upstream request timeout, cluster {callee}, {wait} ms",
                       "WARN upstream {callee} is late"),
    ("fails", "app"): ("ERROR call to {callee} failed, {failures}% of calls",
                       "ERROR circuit breaker for {callee} is open"),
    ("slow", "app"): ("ERROR HikariPool-1 - connection to {callee} timed out after {wait} ms",
                      "WARN waiting long for {callee}"),
    ("fails", "database"): ("ERROR could not connect to {callee}, {failures}% of attempts", "ERROR dblink to {callee} lost"),
    ("slow", "database"): ("ERROR foreign server {callee} timed out after {wait} ms", "LOG waiting for {callee}"),
    ("fails", "queue"): ("ERROR federation link to {callee} down, {failures}% lost", "ERROR exchange {callee} unreachable"),
    ("slow", "queue"): ("ERROR shovel to {callee} blocked for {wait} ms", "WARN credit from {callee} late"),
}

# A service in trouble speaks of itself, without naming a cause.
OWN: dict[tuple[str, str], tuple[str, ...]] = {
    ("fails", "edge"): ("ERROR {errors}% of requests answered 5xx", "ERROR local replies exceed budget"),
    ("slow", "edge"): ("WARN p95 {latency} ms, cpu {cpu}%", "WARN downstream waits long"),
    ("fails", "app"): ("ERROR request failed, {errors}% of requests", "ERROR servlet answers with 500"),
    ("slow", "app"): ("WARN slow request, p95 {latency} ms, cpu {cpu}%", "WARN servlet answers late"),
    ("fails", "database"): ("ERROR canceling statement due to statement timeout, {errors}% of statements",
                            "ERROR statements aborted"),
    ("slow", "database"): ("LOG duration {latency} ms, cpu {cpu}%", "LOG statements exceed log_min_duration"),
    ("fails", "queue"): ("ERROR publish not confirmed, {errors}% of messages", "ERROR channel operation failed"),
    ("slow", "queue"): ("WARN delivery takes {latency} ms, cpu {cpu}%", "WARN channel operation late"),
}

# Innocent anomalies: they happen anywhere, fault or none.
BENIGN: dict[str, tuple[str, ...]] = {
    "edge": ("WARN certificate expires in {n} days", "ERROR client disconnected before response",
             "INFO hot restart finished", "WARN deprecated field in route config"),
    "app": ("WARN GC pause {n}0 ms", "INFO deploy of r{n} finished, all checks green",
            "ERROR invalid request body from client, 400", "WARN feature flag lookup slow once"),
    "database": ("LOG checkpoint complete: wrote {n}00 buffers", "LOG automatic vacuum of table sessions",
                 "ERROR duplicate key value violates unique constraint", "LOG base backup finished"),
    "queue": ("INFO mirror sync finished", "WARN connection closed by client, missed heartbeats",
              "ERROR message rejected by consumer, dead-lettered", "INFO garbage collection of node finished"),
}

# Ordinary work.
NORMAL: dict[str, tuple[str, ...]] = {
    "edge": ("INFO 200 in {latency} ms", "INFO access log flushed", "INFO health check passed for all clusters"),
    "app": ("INFO request served in {latency} ms", "INFO scheduled job done", "INFO heartbeat sent"),
    "database": ("LOG statement done in {latency} ms", "LOG connection authorized", "LOG autovacuum worker idle"),
    "queue": ("INFO message delivered in {latency} ms", "INFO consumer acknowledged", "INFO queue index synced"),
}
