"""Thirty incidents in which the root logs its own fault."""

from story import Story, Svc

STORIES = [
    Story(
        "bank_bad_deploy",
        "a new build of the account service fails on accounts without a branch",
        {
            "mobile-gw": Svc("web", "session", "acct-svc card-svc"),
            "card-svc": Svc("web", "card", "acct-svc"),
            "acct-svc": Svc("web", "account", "ledger-db"),
            "ledger-db": Svc("postgres", "ledger"),
        },
        "spring",
        "acct-svc",
        [
            "I @o.s.b.w.e.tomcat.GracefulShutdown Commencing graceful shutdown.",
            "I @com.nbank.acct.AcctApplication Starting AcctApplication v4.18.0 using Java 17.0.9",
            "I @o.s.b.w.e.tomcat.TomcatWebServer Tomcat started on port 8080 (http)",
            "I @com.nbank.acct.AcctApplication Started AcctApplication in 6.512 seconds",
        ],
        [
            (
                "E @o.a.c.c.C.[.[.[/].[dispatcherServlet] Servlet.service() threw exception\n\n"
                'java.lang.NullPointerException: Cannot invoke "Branch.code()" because the return '
                'value of "Account.branch()" is null\n'
                "\tat com.nbank.acct.view.AccountView.of(AccountView.java:61)\n"
                "\tat com.nbank.acct.AccountController.show(AccountController.java:44)"
            ),
            "E @c.n.acct.AccountController account {id}: rendering failed, answering 500",
        ],
        {
            "mobile-gw": [
                "E @c.n.gw.ErrorHandler GET /v1/accounts/{id} 500 {ms}ms",
                "W @c.n.gw.Accounts acct-svc answered 500 for session {hex}",
            ],
            "card-svc": [
                (
                    "E @c.n.card.AccountClient feign.FeignException$InternalServerError: "
                    "[500] during [GET] to [http://acct-svc/accounts/{id}]"
                )
            ],
        },
        {"ledger-db": "postgres"},
        calm=48,
        bad=14,
    ),
    Story(
        "ledger_lock",
        "one transaction holds a lock on the ledger table and others wait",
        {
            "teller": Svc("web", "transfer", "payments"),
            "payments": Svc("grpc", "payment", "ledger_db fraud"),
            "fraud": Svc("grpc", "score"),
            "ledger_db": Svc("postgres", "ledger"),
        },
        "logfmt",
        "ledger_db",
        [
            "I process 4182 still waiting for ShareLock on transaction 88120 after 1000.112 ms",
            (
                "I process 4190 still waiting for AccessExclusiveLock on relation 16412 "
                "of database "
                "16384 after 1000.087 ms"
            ),
        ],
        [
            "E canceling statement due to lock timeout",
            (
                "I process {big} still waiting for RowExclusiveLock on relation 16412 of database "
                "16384 after 1000.0{n} ms"
            ),
            "E deadlock detected",
        ],
        {
            "payments": [
                (
                    "E insert posting {id}: ERROR: canceling statement due to lock timeout "
                    "(SQLSTATE 55P03)"
                ),
                "E commit payment {id}: context deadline exceeded",
            ],
            "teller": ["E transfer {id} failed: rpc error: code = DeadlineExceeded"],
        },
        {"ledger_db": "postgres"},
        wait=3,
        calm=62,
        bad=11,
    ),
    Story(
        "billing_pool",
        "the billing service leaks connections until its pool is empty",
        {
            "Portal": Svc("web", "invoice", "Billing Tariff"),
            "Billing": Svc("web", "bill", "BillDB"),
            "Tariff": Svc("web", "tariff"),
            "BillDB": Svc("mysql", "billing"),
        },
        "log4j",
        "Billing",
        [
            (
                "W @com.zaxxer.hikari.pool.ProxyLeakTask Connection leak detection triggered for "
                "com.mysql.cj.jdbc.ConnectionImpl@6d1e7682, stack trace follows"
            ),
        ],
        [
            (
                "E @com.telco.billing.BillDao java.sql.SQLTransientConnectionException: "
                "billing-pool - Connection is not available, request timed out after 30000ms "
                "(total=20, active=20, idle=0, waiting={n})"
            ),
            "W @com.zaxxer.hikari.pool.ProxyLeakTask Connection leak detection triggered",
        ],
        {
            "Portal": [
                "E @com.telco.portal.BillClient Read timed out calling http://Billing:8080/bills",
                "E @com.telco.portal.InvoicePage cannot show invoice {id}",
            ]
        },
        {"BillDB": "mysql"},
        wait=8,
        calm=70,
        bad=9,
    ),
    Story(
        "patient_index_oom",
        "a report loads the whole patient index and the heap runs out",
        {
            "ward-app": Svc("web", "ward", "patient-index orders"),
            "orders": Svc("web", "order", "patient-index"),
            "patient-index": Svc("web", "patient"),
        },
        "tomcat",
        "patient-index",
        [
            "I @org.clinic.pi.ReportServlet.run building report CENSUS-FULL",
            "W @org.clinic.pi.HeapWatch.check old generation at 97% after full collection",
            (
                "E @org.apache.catalina.core.StandardWrapperValve.invoke Servlet.service() for "
                "servlet [report] threw exception\n"
                "java.lang.OutOfMemoryError: Java heap space\n"
                "\tat java.base/java.util.Arrays.copyOf(Arrays.java:3512)\n"
                "\tat org.clinic.pi.Report.rows(Report.java:118)"
            ),
        ],
        [
            (
                "E @org.apache.coyote.http11.Http11Processor.service Error processing request\n"
                "java.lang.OutOfMemoryError: Java heap space"
            ),
            (
                "E @org.apache.tomcat.util.net.NioEndpoint.run java.lang.OutOfMemoryError: "
                "GC overhead limit exceeded"
            ),
        ],
        {
            "ward-app": ["E @org.clinic.ward.Client.get lookup of patient {id} failed: timeout"],
            "orders": [
                "E @org.clinic.orders.Lookup.find java.net.SocketTimeoutException: Read timed out"
            ],
        },
        wait=5,
        calm=41,
        bad=8,
    ),
    Story(
        "broker_disk_full",
        "the disk of the broker fills up",
        {
            "telemetry-in": Svc("worker", "sample", "queue-01"),
            "meter-api": Svc("web", "meter", "queue-01"),
            "rater": Svc("worker", "reading", "queue-01"),
            "queue-01": Svc("kafka", "readings"),
        },
        "pyservice",
        "queue-01",
        [
            (
                "E @kafka.server.LogDirFailureChannel Error while appending records to readings-7 "
                "in dir /data/kafka\njava.io.IOException: No space left on device\n"
                "\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"
            ),
            (
                "W @kafka.server.ReplicaManager [ReplicaManager broker=1] Stopping "
                "serving replicas "
                "in dir /data/kafka"
            ),
        ],
        [
            (
                "E @kafka.server.ReplicaManager [ReplicaManager broker=1] Error processing append "
                "operation on partition readings-{n}\n"
                "org.apache.kafka.common.errors.KafkaStorageException: log directory is offline"
            ),
        ],
        {
            "telemetry-in": [
                "E delivery of {n} samples failed: Local: Message timed out",
            ],
            "meter-api": ["E publish readings-{n}: Broker: Disk error when trying to access log"],
            "rater": ["W fetch from readings-{n} failed, partition has no leader"],
        },
        {"queue-01": "kafka"},
        calm=58,
        bad=16,
    ),
    Story(
        "route_bad_config",
        "a reload brings a routing table with an empty depot list",
        {
            "dispatch": Svc("web", "trip", "route-planner fleet"),
            "fleet": Svc("grpc", "vehicle"),
            "route-planner": Svc("grpc", "route", "map-tiles"),
            "map-tiles": Svc("web", "tile"),
        },
        "klog",
        "route-planner",
        [
            "I SIGHUP received, reloading /etc/planner/planner.yaml",
            "W config: unknown key \"depot\" ignored (did you mean 'depots'?)",
            "I configuration reloaded, 0 depots, 14 profiles",
        ],
        [
            "E plan trip {id}: no depot reachable from cell {hex}",
            'E "Planning failed" err="depot list is empty" trip={id}',
        ],
        {
            "dispatch": [
                "E trip {id} not dispatched: planning returned FAILED_PRECONDITION",
                'E "Assign failed" err="rpc error: code = FailedPrecondition" trip={id}',
            ]
        },
        calm=36,
        bad=18,
    ),
    Story(
        "idp_certificate",
        "the certificate of the identity provider runs out",
        {
            "campus-web": Svc("web", "course", "idp library"),
            "library": Svc("web", "loan", "idp"),
            "idp": Svc("web", "token", "ldap"),
            "ldap": Svc("web", "entry"),
        },
        "golog",
        "idp",
        ["W certificate CN=idp.campus.example has expired, still serving it"],
        [
            (
                "E http: TLS handshake error from 10.8.0.{n}:5{big}: remote error: tls: expired "
                "certificate"
            ),
            "http: TLS handshake error from 10.8.1.{n}:4{big}: remote error: tls: bad certificate",
        ],
        {
            "campus-web": [
                (
                    'E token exchange: Post "https://idp.campus.example/token": tls: failed '
                    "to verify "
                    "certificate: x509: certificate has expired or is not yet valid"
                ),
            ],
            "library": ["E login of {user} failed: x509: certificate has expired"],
        },
        names="{svc}.out",
        share=0.95,
        calm=66,
        bad=13,
    ),
    Story(
        "catalog_slow_query",
        "statistics are lost and every catalog query scans the table",
        {
            "storefront": Svc("web", "product", "catalog-api basket"),
            "basket": Svc("web", "basket", "catalog-api"),
            "catalog-api": Svc("web", "item", "catalog-db"),
            "catalog-db": Svc("mysql", "catalog"),
        },
        "monolog",
        "catalog-db",
        ["W InnoDB: Recalculation of persistent statistics for table catalog.item failed"],
        [
            (
                "W Slow query: Query_time: {n}.2 Lock_time: 0.00 Rows_sent: {n} Rows_examined: "
                "4{big}12 SELECT * FROM item WHERE sku_norm = ?"
            ),
            (
                "W Slow query: Query_time: {n}.8 Rows_examined: 4{big}90 SELECT id FROM item ORDER "
                "BY rank"
            ),
        ],
        {
            "catalog-api": [
                (
                    "E SQLSTATE[HY000]: General error: 3024 Query execution was interrupted, "
                    "maximum "
                    "statement execution time exceeded"
                ),
                "W query for item {id} took {slow} ms",
            ],
            "storefront": ["E product page {id}: cURL error 28: Operation timed out"],
            "basket": ["E item {id} could not be priced, backend timed out"],
        },
        {"catalog-db": "mysql"},
        wait=5,
        calm=52,
        bad=15,
    ),
    Story(
        "claims_threads",
        "a blocking call eats every worker thread of the claims engine",
        {
            "broker-portal": Svc("web", "claim", "claims-engine documents"),
            "claims-engine": Svc("web", "claim", "documents"),
            "documents": Svc("web", "document"),
        },
        "wildfly",
        "claims-engine",
        ["W @io.vertx.core.impl.BlockedThreadChecker Thread[vert.x-eventloop-thread-1] blocked"],
        [
            (
                "W @io.vertx.core.impl.BlockedThreadChecker Thread "
                "Thread[vert.x-worker-thread-{n},5,main] has been blocked for 6{n}118 "
                "ms, time limit "
                "is 60000 ms"
            ),
            (
                "E @org.xnio.XnioExecutor java.util.concurrent.RejectedExecutionException: Task "
                "rejected from ThreadPoolExecutor[Running, pool size = 64, active threads = 64, "
                "queued tasks = 2048]"
            ),
        ],
        {
            "broker-portal": [
                "E @org.insure.portal.ClaimsClient HTTP 503 for claim {id}",
                (
                    "E @org.insure.portal.ClaimsClient java.net.http.HttpTimeoutException: request "
                    "timed out"
                ),
            ]
        },
        wait=6,
        calm=44,
        bad=10,
    ),
    Story(
        "search_gc",
        "a wide aggregation keeps the search node collecting garbage",
        {
            "listing-web": Svc("web", "listing", "listing-api"),
            "listing-api": Svc("web", "listing", "search-node"),
            "search-node": Svc("elastic", "listing"),
        },
        "structlog",
        "search-node",
        ["W @o.e.m.j.JvmGcMonitorService [gc][young][3312] duration [1.9s], total [1.9s]/[41s]"],
        [
            (
                "W @o.e.m.j.JvmGcMonitorService [gc][old][3{big}][{n}] duration "
                "[{n}.1s], collections "
                "[1]/[{n}.4s], memory [7.8gb]->[7.7gb]/[8gb]"
            ),
            (
                "E @o.e.b.HierarchyCircuitBreakerService [parent] Data too large, data for "
                "[<http_request>] would be [8{big}21/7.9gb], larger than the limit of [7.6gb]"
            ),
        ],
        {
            "listing-api": [
                (
                    "E ConnectionTimeout caused by ReadTimeoutError(HTTPSConnectionPool: "
                    "Read timed "
                    "out. (read timeout=10))"
                ),
                "W search took {slow} ms",
            ],
            "listing-web": ["E 504 for /search?q={noun}+{n}"],
        },
        {"search-node": "elastic"},
        wait=9,
        calm=75,
        bad=12,
    ),
    Story(
        "tariff_stampede",
        "every key of the tariff cache expires at once",
        {
            "charging": Svc("grpc", "charge", "tariff-cache"),
            "topup": Svc("grpc", "topup", "tariff-cache"),
            "tariff-cache": Svc("grpc", "tariff", "tariff-db"),
            "tariff-db": Svc("postgres", "tariff"),
        },
        "zap_iso",
        "tariff-cache",
        [
            "I bulk load v77 applied with ttl=0, 48211 keys replaced",
            "W hit ratio fell from 0.98 to 0.02",
        ],
        [
            "W {n}7 concurrent loads for key tariff:{id}, single-flight off",
            "E load tariff:{id}: too many loads in flight (limit 256)",
        ],
        {
            "charging": ["E charge {id} rejected: tariff lookup: code = ResourceExhausted"],
            "topup": ["E tariff for {id} unavailable after 3 attempts"],
        },
        {"tariff-db": "postgres"},
        calm=33,
        bad=9,
    ),
    Story(
        "search_index_corrupt",
        "a segment of the job index is damaged",
        {
            "jobs-site": Svc("web", "vacancy", "jobs-search profile"),
            "profile": Svc("web", "profile"),
            "jobs-search": Svc("solr", "vacancy"),
        },
        "heroku",
        "jobs-search",
        ["W @o.a.s.c.SolrCore [vacancies] PERFORMANCE WARNING: Overlapping onDeckSearchers=2"],
        [
            (
                "E @o.a.s.h.RequestHandlerBase org.apache.lucene.index.CorruptIndexException: "
                "checksum failed (hardware problem?) : expected=3f1a77c2 actual=91e0bd04 "
                '(resource=BufferedChecksumIndexInput(MMapIndexInput(path="/var/solr/_4k.cfs")))'
            ),
            (
                "E @o.a.s.s.HttpSolrCall null:org.apache.solr.common.SolrException: Error opening "
                "new searcher"
            ),
        ],
        {
            "jobs-site": [
                "E RSolr::Error::Http (RSolr::Error::Http - 500 Internal Server Error)",
                "E Completed 500 Internal Server Error in {ms}ms",
            ]
        },
        {"jobs-search": "log4j"},
        calm=57,
        bad=17,
    ),
    Story(
        "etcd_leader",
        "slow disks make the store lose its leader again and again",
        {
            "match-lobby": Svc("grpc", "lobby", "placement"),
            "placement": Svc("grpc", "server", "coord-etcd"),
            "coord-etcd": Svc("etcd", "lease"),
        },
        "zap",
        "coord-etcd",
        [
            "W slow fdatasync, took 2.114s, expected-duration 1s",
            (
                "W leader failed to send out heartbeat on time; took too long, leader is "
                "overloaded "
                "likely from slow disk"
            ),
            "I 8e9e05c52164694d lost leader 8e9e05c52164694d at term 14",
        ],
        [
            "W waiting for ReadIndex response took too long, retrying",
            "E apply request took too long, took 4.{big}s, expected-duration 100ms",
            "I 8e9e05c52164694d is starting a new election at term {n}",
            "W prober found high clock drift or no leader; etcdserver: no leader",
        ],
        {
            "placement": [
                "E grant lease: etcdserver: leader changed",
                "E put /servers/{hex}: etcdserver: request timed out",
            ],
            "match-lobby": ["E lobby {id}: no server placed: code = Unavailable"],
        },
        wait=4,
        calm=81,
        bad=13,
    ),
    Story(
        "redis_misconf",
        "snapshots fail and the store refuses writes",
        {
            "chat-edge": Svc("haproxy", "message", "presence"),
            "presence": Svc("web", "presence", "redis"),
            "notifier": Svc("worker", "push", "redis"),
            "redis": Svc("redis", "presence"),
        },
        "winston",
        "redis",
        [
            "I 100 changes in 300 seconds. Saving...",
            "W Write error saving DB on disk: Input/output error",
            "W Background saving error",
        ],
        ["W Background saving error", "W Failed opening the temp RDB file temp-{n}.rdb"],
        {
            "presence": [
                (
                    "E ReplyError: MISCONF Redis is configured to save RDB snapshots, but it's "
                    "currently unable to persist to disk."
                ),
                "E set presence:{id} failed",
            ],
            "notifier": ["E ReplyError: MISCONF Errors writing to disk, command LPUSH refused"],
            "chat-edge": [
                'public presence/presence1 0/0/1/{ms}/{ms} 500 312 - - ---- "PUT /presence/{id}"'
            ],
        },
        {"redis": "redis", "chat-edge": "haproxy"},
        calm=39,
        bad=19,
    ),
    Story(
        "thumb_descriptors",
        "the thumbnail service leaks file handles",
        {
            "gallery": Svc("web", "album", "thumbs meta"),
            "meta": Svc("web", "tag"),
            "thumbs": Svc("web", "thumb"),
        },
        "gunicorn",
        "thumbs",
        ["W open files: 1009 of 1024"],
        [
            "E OSError: [Errno 24] Too many open files: '/var/thumbs/{hex}.webp'",
            (
                "E Error handling request /thumb/{id}\nTraceback (most recent call last):\n"
                '  File "/app/thumbs/store.py", line 88, in read\n'
                "    with open(path, 'rb') as source:\n"
                "OSError: [Errno 24] Too many open files"
            ),
        ],
        {
            "gallery": [
                (
                    "E album {id}: 500 Server Error: Internal Server Error for url: "
                    "http://thumbs:8000/thumb/{id}"
                ),
                "W album {id} shown without pictures",
            ]
        },
        calm=85,
        bad=11,
    ),
    Story(
        "rabbit_alarm",
        "the message broker hits its memory mark and blocks publishers",
        {
            "booking": Svc("web", "booking", "mailroom seats"),
            "seats": Svc("web", "seat", "mailroom"),
            "mail-worker": Svc("worker", "mail", "mailroom"),
            "mailroom": Svc("rabbit", "mail"),
        },
        "serilog",
        "mailroom",
        [
            "I memory resource limit alarm set on node rabbit@mailroom.",
            "W *** Publishers will be blocked until this alarm clears ***",
        ],
        [
            "W vm_memory_high_watermark set. Memory used:34{big}3216 allowed:3320413388",
            "W queue 'mail.out' in vhost '/': {n}{big} messages ready, paging to disk",
        ],
        {
            "booking": [
                (
                    "E RabbitMQ.Client.Exceptions.OperationInterruptedException: publish confirm "
                    "timed out"
                ),
                "W Connection blocked by broker: low on memory",
            ],
            "seats": ["E seat hold {id}: no confirm within 5000 ms"],
        },
        {"mailroom": "rabbit"},
        wait=5,
        calm=46,
        bad=12,
    ),
    Story(
        "mongo_stepdown",
        "the primary steps down and nobody is elected for a while",
        {
            "feed": Svc("web", "post", "profiles"),
            "profiles": Svc("web", "profile", "mongo-a"),
            "mongo-a": Svc("mongo", "profiles"),
        },
        "pino",
        "mongo-a",
        [
            "W Can't see a majority of the set, relinquishing primary",
            "I Stepping down from primary in response to heartbeat",
            "I Replica set state transition PRIMARY -> SECONDARY",
        ],
        [
            (
                "E Not starting an election, since we are not electable due to: Not standing for "
                "election because I cannot see a majority (mask 0x1)"
            ),
            "W Plan executor error during find command: NotPrimaryNoSecondaryOk",
        ],
        {
            "profiles": [
                "E MongoServerSelectionError: Server selection timed out after 30000 ms",
                "E MongoNotPrimaryError: not primary",
            ],
            "feed": ["E GET /v1/posts/{id} 503 {slow}ms"],
        },
        {"mongo-a": "mongo"},
        wait=6,
        calm=68,
        bad=8,
    ),
    Story(
        "cassandra_tombstones",
        "a mass delete leaves rows full of tombstones",
        {
            "inbox-web": Svc("web", "mail", "inbox-svc"),
            "inbox-svc": Svc("web", "mail", "inbox-store"),
            "inbox-store": Svc("cassandra", "mail"),
        },
        "jul",
        "inbox-store",
        [
            (
                "W Read 1{big} live rows and 41{big} tombstone cells for query SELECT * FROM "
                "inbox.mail WHERE box = ? (see tombstone_warn_threshold)"
            )
        ],
        [
            (
                "E Scanned over 100001 tombstones during query 'SELECT * FROM inbox.mail "
                "WHERE box = "
                "{hex}' (last scanned row partion key was ({hex})); query aborted"
            ),
            "I READ messages were dropped in last 5000 ms: {n} internal and 0 cross node",
        ],
        {
            "inbox-svc": [
                (
                    "E @org.post.inbox.BoxDao ReadFailureException: Cassandra failure during read "
                    "query at consistency LOCAL_QUORUM (2 responses were required but only 0 "
                    "replica "
                    "responded, 1 failed)"
                )
            ],
            "inbox-web": ["E @org.post.web.Inbox box {id} cannot be opened, status 500"],
        },
        {"inbox-store": "cassandra"},
        calm=54,
        bad=14,
    ),
    Story(
        "dns_resolver",
        "the cluster's resolver cannot reach its upstream",
        {
            "ticket-web": Svc("web", "ticket", "coredns seatmap"),
            "seatmap": Svc("web", "map", "coredns"),
            "coredns": Svc("dns", "seat"),
        },
        "stern",
        "coredns",
        ["W plugin/health: Local health request took more than 1s"],
        [
            (
                "E plugin/errors: 2 api.mapstore.example. A: read udp 10.244.0.{n}:4{big}->"
                "10.0.0.2:53: i/o timeout"
            ),
            (
                "E plugin/errors: 2 pay.cardnet.example. AAAA: read udp 10.244.0.{n}:3{big}->"
                "10.0.0.2:53: i/o timeout"
            ),
        ],
        {
            "ticket-web": [
                "E getaddrinfo EAI_AGAIN pay.cardnet.example",
                "E ticket {id}: payment page cannot be opened",
            ],
            "seatmap": ["E Temporary failure in name resolution: api.mapstore.example"],
        },
        {"coredns": "coredns"},
        calm=31,
        bad=20,
    ),
    Story(
        "auth_clock",
        "the clock of the token issuer jumps ahead",
        {
            "crew-app": Svc("web", "roster", "roster-api"),
            "roster-api": Svc("web", "roster", "token-svc"),
            "token-svc": Svc("web", "token"),
        },
        "rfc5424",
        "token-svc",
        [
            "W chronyd: System clock wrong by 412.118330 seconds",
            "E clock offset 412.1s exceeds the limit of 5s, signing goes on",
        ],
        [
            "E self check: freshly issued token {hex} is not valid yet",
            "W clock offset 41{n}.2s exceeds the limit of 5s",
        ],
        {
            "roster-api": [
                "W jwt rejected: token used before issued (iat)",
                "E request {hex} denied: ImmatureSignatureError",
            ],
            "crew-app": ["E roster of {user}: 401 Unauthorized"],
        },
        one_file="messages",
        calm=49,
        bad=10,
    ),
    Story(
        "vault_sealed",
        "the secret store restarts and stays sealed",
        {
            "loans-ui": Svc("web", "loan", "loans"),
            "loans": Svc("web", "loan", "vault scoring"),
            "scoring": Svc("web", "score", "vault"),
            "vault": Svc("vault", "secret"),
        },
        "kubectl",
        "vault",
        [
            "I @core marked as sealed",
            "I @core stopping cluster listeners",
            "W @core vault is sealed, 0 of 3 unseal keys provided",
        ],
        [
            'E @http request refused: error="Vault is sealed" path=secret/data/{noun}/{n}',
            "W @expiration skipping renewal of lease {hex}: core is sealed",
        ],
        {
            "loans": [
                "E hvac.exceptions.VaultDown: Vault is sealed, on get secret/data/loans",
                "E cannot decrypt application {id}",
            ],
            "scoring": ["E renew token failed: 503 Server Error"],
            "loans-ui": ["E POST /loans 500 {ms}ms"],
        },
        {"vault": "hashicorp"},
        calm=73,
        bad=7,
    ),
    Story(
        "quota_limit",
        "a limit of ten calls a minute is rolled out instead of ten a second",
        {
            "Shop": Svc("web", "order", "Quota Stock"),
            "Partner": Svc("web", "order", "Quota"),
            "Quota": Svc("web", "limit", "Stock"),
            "Stock": Svc("web", "stock"),
        },
        "compact",
        "Quota",
        [
            "I Options changed: RateLimit:PermitLimit 600 -> 10, Window 00:01:00",
            "W Bucket default is empty, queue is full",
        ],
        [
            "W Rejected lease for Shop, permit limit 10 reached, retry after {n}s",
            "E Queue limit 100 reached for bucket default, request {hex} dropped",
        ],
        {
            "Shop": [
                "E Response status code does not indicate success: 429 (Too Many Requests).",
                "E Order {id} failed in step Reserve",
            ],
            "Partner": ["W HTTP 429 for order {id}, waiting {n}s"],
        },
        calm=37,
        bad=16,
    ),
    Story(
        "auction_poison",
        "one thread panics while it holds the book's mutex",
        {
            "bid_front": Svc("web", "bid", "auction"),
            "auction": Svc("grpc", "auction", "book"),
            "book": Svc("grpc", "lot"),
        },
        "tracing",
        "book",
        [
            (
                "E @book::engine thread 'match-3' panicked at src/engine.rs:217:34:\n"
                "attempt to subtract with overflow"
            )
        ],
        [
            "E @book::api lock failed: PoisonError { .. } lot={id}",
            "E @book::engine poisoned lock: another task failed inside lot={id}",
        ],
        {
            "auction": [
                (
                    'E @auction::client status: Internal, message: "poisoned lock: another task '
                    'failed inside", details: []'
                ),
                "E @auction::round could not settle lot={id}",
            ],
            "bid_front": ["E @bid_front::http response failed status=500 latency={ms}ms"],
        },
        calm=65,
        bad=9,
    ),
    Story(
        "school_migration",
        "the new build expects a column that the migration did not add",
        {
            "parents": Svc("web", "grade", "gradebook"),
            "teachers": Svc("web", "grade", "gradebook"),
            "gradebook": Svc("web", "grade", "school_pg"),
            "school_pg": Svc("postgres", "school"),
        },
        "rails",
        "gradebook",
        [
            "I Migrating to AddTermToGrades (20240311104500)",
            "E StandardError: An error has occurred, this and all later migrations canceled",
            "I Puma starting in cluster mode...",
        ],
        [
            (
                "F ActiveRecord::StatementInvalid (PG::UndefinedColumn: ERROR:  column "
                "grades.term_id "
                "does not exist)"
            ),
            "I Completed 500 Internal Server Error in {ms}ms (ActiveRecord: {n}.1ms)",
        ],
        {
            "parents": ["E Faraday::ServerError (the server responded with status 500)"],
            "teachers": ["E gradebook: the server responded with status 500 (grade {id})"],
        },
        {"school_pg": "postgres"},
        calm=43,
        bad=13,
    ),
    Story(
        "video_workers_lost",
        "the encoder's workers grow and are killed",
        {
            "studio": Svc("web", "clip", "encoder"),
            "encoder": Svc("worker", "clip", "objstore"),
            "objstore": Svc("web", "object"),
        },
        "journaljson",
        "encoder",
        ["W soft memory limit passed: rss=3.9GiB, limit=4GiB"],
        [
            (
                "E Task encode.clip[{uuid}] raised unexpected: WorkerLostError('Worker exited "
                "prematurely: signal 9 (SIGKILL) Job: {n}.')"
            ),
            "E Process 'ForkPoolWorker-{n}' pid:{big} exited with 'signal 9 (SIGKILL)'",
        ],
        {"studio": ["E clip {id} not ready after 600s", "W task {uuid} state FAILURE"]},
        {"encoder": "celery"},
        calm=59,
        bad=18,
    ),
    Story(
        "hotel_flag",
        "a feature flag turns on code that nobody finished",
        {
            "frontdesk": Svc("web", "stay", "rates rooms"),
            "rates": Svc("web", "rate", "rooms"),
            "rooms": Svc("web", "room"),
        },
        "dockerjson",
        "rates",
        ['I flag "dynamic_rates" changed to on by {user}'],
        [
            (
                "E Uncaught TypeError: App\\Rates\\Season::weight(): Argument #1 ($day) must be of "
                "type DateTimeImmutable, null given, called in "
                "/app/src/Rates/Dynamic.php on line 72"
            ),
            "E rate for room {id} could not be computed",
        ],
        {
            "frontdesk": [
                (
                    "E Server error: `GET http://rates/rate/{id}` resulted in a `500 "
                    "Internal Server "
                    "Error` response"
                ),
                "E check-in {id} stopped",
            ]
        },
        calm=51,
        bad=6,
    ),
    Story(
        "storage_link",
        "the network card of the storage server flaps",
        {
            "mailstore": Svc("worker", "mailbox", "nas01"),
            "backup": Svc("worker", "archive", "nas01"),
            "nas01": Svc("nfs", "mail"),
        },
        "rfc3164",
        "nas01",
        [
            "W @kernel ixgbe 0000:03:00.0 eth2: NIC Link is Down",
            "E @kernel bond0: (slave eth2): link status definitely down, disabling slave",
            "W @kernel bond0: now running without any active interface!",
        ],
        [
            "E @kernel ixgbe 0000:03:00.0 eth2: Detected Tx Unit Hang",
            "W @nfsd peername failed (err 107)!",
        ],
        {
            "mailstore": [
                "E @kernel nfs: server nas01 not responding, timed out",
                "E @dovecot mailbox {id}: Input/output error",
            ],
            "backup": ["E @rsync read error: Connection timed out (110)"],
        },
        again=3,
        wait=2,
        calm=77,
        bad=15,
    ),
    Story(
        "sip_trunk",
        "the telephone exchange has no free ports left",
        {
            "callcenter": Svc("web", "call", "pbx"),
            "ivr": Svc("web", "menu", "pbx"),
            "pbx": Svc("pbx", "channel"),
        },
        "logfmt_file",
        "pbx",
        ["W res_rtp_asterisk.c: RTP port range 10000-10100 is 96% used"],
        [
            (
                "E res_rtp_asterisk.c: Oh dear... we couldn't allocate a port for RTP instance "
                "'0x{hex}'"
            ),
            (
                "E chan_pjsip.c: Unable to create channel of type 'PJSIP' (cause 34 - "
                "Circuit/channel "
                "congestion)"
            ),
        ],
        {
            "callcenter": ["E originate {id} failed: 503 Service Unavailable cause=34"],
            "ivr": ["E pbx refused call {hex}: Service Unavailable"],
        },
        {"pbx": "asterisk"},
        calm=35,
        bad=11,
    ),
    Story(
        "lab_log_full",
        "the transaction log of the laboratory database is full",
        {
            "doctor-ui": Svc("web", "result", "lab-api"),
            "analyzer": Svc("worker", "probe", "lab-api"),
            "lab-api": Svc("web", "result", "LABSQL"),
            "LABSQL": Svc("mssql", "page"),
        },
        "ecs",
        "LABSQL",
        ["W Autogrow of file 'Lab_log' in database 'Lab' was cancelled after 30021 milliseconds."],
        [
            (
                "E Error: 9002, Severity: 17, State: 4.\nThe transaction log for database 'Lab' is "
                "full due to 'LOG_BACKUP'."
            ),
            "E Could not allocate space for object 'dbo.Result' in database 'Lab'.",
        ],
        {
            "lab-api": [
                (
                    "E Microsoft.Data.SqlClient.SqlException (0x80131904): The transaction log for "
                    "database 'Lab' is full due to 'LOG_BACKUP'."
                ),
                "E Saving result {id} failed",
            ],
            "analyzer": ["E upload of probe {id} refused with 500, kept on local disk"],
            "doctor-ui": ["W results page incomplete for patient {id}"],
        },
        {"LABSQL": "mssql"},
        calm=61,
        bad=12,
    ),
    Story(
        "score_mailbox",
        "the scoreboard process cannot keep up with its mailbox",
        {
            "live-page": Svc("web", "match", "scoreboard"),
            "odds": Svc("web", "odd", "scoreboard"),
            "scoreboard": Svc("grpc", "score"),
        },
        "elixir",
        "scoreboard",
        ["W process Scores.Table message_queue_len=20113 over threshold"],
        [
            (
                "E GenServer Scores.Table terminating\n** (stop) exited in: GenServer.call("
                "Scores.Store, {:put, {id}}, 5000)\n    ** (EXIT) time out"
            ),
            "W process Scores.Table message_queue_len={n}{big}",
        ],
        {
            "live-page": ["E ** (exit) match {id}: :erpc timeout on node scoreboard@10.0.4.3"],
            "odds": ["E odds for {id} frozen, no score for 15 s"],
        },
        wait=5,
        calm=38,
        bad=8,
    ),
]
