"""Fifteen incidents in which only the callers' logs are at hand."""

from story import Story, Svc

STORIES = [
    Story(
        "loyalty_feign",
        "Java callers name the points service in Feign and OkHttp errors",
        {
            "checkout": Svc("web", "order", "points-svc vouchers"),
            "vouchers": Svc("web", "voucher", "points-svc"),
            "points-svc": Svc("web", "point"),
        },
        "log4j",
        "points-svc",
        felt={
            "checkout": [
                (
                    "E @c.s.checkout.PointsClient feign.RetryableException: Connection refused "
                    "executing GET http://points-svc:8080/points/{id}"
                ),
                "W @c.s.checkout.Order order {id} placed without points",
            ],
            "vouchers": [
                (
                    "E @c.s.voucher.Http java.net.ConnectException: Failed to connect to "
                    "points-svc/10.96.14.3:8080"
                )
            ],
        },
        hidden=("points-svc",),
        calm=64,
        bad=11,
    ),
    Story(
        "drone_grpc_go",
        "Go callers see a gRPC service as unavailable",
        {
            "mission": Svc("grpc", "mission", "airspace weather"),
            "weather": Svc("grpc", "forecast"),
            "airspace": Svc("grpc", "zone"),
            "pilot-api": Svc("web", "flight", "mission airspace"),
        },
        "logfmt_file",
        "airspace",
        felt={
            "mission": [
                (
                    "E check zone {id}: rpc error: code = Unavailable desc = connection error: "
                    'desc = "transport: Error while dialing: dial tcp: lookup airspace on '
                    '10.96.0.10:53: no such host"'
                ),
            ],
            "pilot-api": [
                "E airspace.Check: rpc error: code = Unavailable desc = last connection error",
                "E POST /v1/flights 503 {ms}ms",
            ],
        },
        hidden=("airspace",),
        calm=40,
        bad=14,
    ),
    Story(
        "library_requests",
        "Python callers print the pool errors of requests",
        {
            "reading-room": Svc("web", "book", "isbn-lookup"),
            "acquisitions": Svc("worker", "title", "isbn-lookup"),
            "isbn-lookup": Svc("web", "isbn"),
        },
        "python",
        "isbn-lookup",
        felt={
            "reading-room": [
                (
                    "E @reading.isbn HTTPConnectionPool(host='isbn-lookup', port=5000): Max "
                    "retries "
                    "exceeded with url: /isbn/{id} (Caused by NewConnectionError(': Failed to "
                    "establish a new connection: [Errno 111] Connection refused'))"
                ),
            ],
            "acquisitions": [
                "W @acq.enrich isbn-lookup: Read timed out. (read timeout=5)",
                "E @acq.enrich title {id} left without metadata",
            ],
        },
        hidden=("isbn-lookup",),
        wait=5,
        calm=53,
        bad=17,
    ),
    Story(
        "pharmacy_pg",
        "two services cannot reach their Postgres host",
        {
            "rx-portal": Svc("web", "recipe", "rx-core"),
            "rx-core": Svc("web", "recipe", "rx-db"),
            "stock-sync": Svc("worker", "drug", "rx-db"),
            "rx-db": Svc("postgres", "rx"),
        },
        "pyservice",
        "rx-db",
        felt={
            "rx-core": [
                (
                    "E psycopg.OperationalError: connection failed: connection to server at "
                    '"rx-db" '
                    "(10.7.0.4), port 5432 failed: Connection timed out"
                ),
                "E recipe {id} not saved",
            ],
            "stock-sync": [
                'E could not translate host name "rx-db" to address: Name or service not known'
            ],
            "rx-portal": ["E 502 from recipe service for {user}"],
        },
        hidden=("rx-db",),
        wait=3,
        calm=69,
        bad=10,
    ),
    Story(
        "arena_redis_client",
        "Node callers print ioredis errors",
        {
            "arena-ws": Svc("web", "room", "session-redis"),
            "ranking": Svc("web", "rank", "session-redis"),
            "session-redis": Svc("redis", "room"),
        },
        "pino",
        "session-redis",
        felt={
            "arena-ws": [
                "E [ioredis] Unhandled error event: Error: connect ECONNREFUSED session-redis:6379",
                (
                    "E room {id}: MaxRetriesPerRequestError: Reached the max retries per request "
                    "limit (which is 20)"
                ),
            ],
            "ranking": ["E getaddrinfo ENOTFOUND session-redis", "E rank of {user} unknown"],
        },
        hidden=("session-redis",),
        calm=45,
        bad=9,
    ),
    Story(
        "newsroom_axios",
        "Node callers print axios errors for the translation service",
        {
            "newsroom": Svc("web", "article", "translator photos"),
            "photos": Svc("web", "photo"),
            "wire-import": Svc("worker", "story", "translator"),
            "translator": Svc("web", "text"),
        },
        "compose",
        "translator",
        felt={
            "newsroom": [
                "E AxiosError: timeout of 8000ms exceeded {url: 'http://translator:3000/v2/text'}",
                "W article {id} published without translation",
            ],
            "wire-import": ["E POST http://translator:3000/v2/text: socket hang up (ECONNRESET)"],
        },
        hidden=("translator",),
        one_file="compose.log",
        wait=8,
        calm=56,
        bad=13,
    ),
    Story(
        "tax_httpclient",
        ".NET callers cannot reach the registry",
        {
            "Filing": Svc("web", "form", "Registry Archive"),
            "Archive": Svc("web", "form"),
            "Refunds": Svc("worker", "refund", "Registry"),
            "Registry": Svc("web", "person"),
        },
        "serilog",
        "Registry",
        felt={
            "Filing": [
                (
                    "E System.Net.Http.HttpRequestException: No connection could be made "
                    "because the "
                    "target machine actively refused it. (registry:8443)"
                ),
                "E Form {id} cannot be checked",
            ],
            "Refunds": [
                (
                    "E Refund {id}: The request to https://registry:8443/person was canceled "
                    "due to "
                    "the configured HttpClient.Timeout of 10 seconds elapsing."
                )
            ],
        },
        hidden=("Registry",),
        roots={"Registry", "registry"},
        names="{svc}.txt",
        wait=4,
        calm=78,
        bad=12,
    ),
    Story(
        "museum_guzzle",
        "PHP callers print Guzzle errors for the till",
        {
            "ticketing": Svc("web", "ticket", "till"),
            "giftshop": Svc("web", "basket", "till members"),
            "members": Svc("web", "member"),
            "till": Svc("web", "receipt"),
        },
        "monolog",
        "till",
        felt={
            "ticketing": [
                (
                    "E GuzzleHttp\\Exception\\ConnectException: cURL error 7: Failed to connect to "
                    "till port 9100 after 2 ms: Couldn't connect to server for "
                    "http://till:9100/receipts"
                )
            ],
            "giftshop": [
                (
                    "E cURL error 28: Operation timed out after 5001 milliseconds with 0 bytes "
                    "received for http://till:9100/receipts"
                ),
                "E basket {id} not paid",
            ],
        },
        hidden=("till",),
        calm=34,
        bad=16,
    ),
    Story(
        "farm_faraday",
        "Ruby callers print Faraday errors for the weather station service",
        {
            "irrigation": Svc("web", "valve", "station-feed"),
            "harvest": Svc("web", "field", "station-feed irrigation"),
            "station-feed": Svc("web", "reading"),
        },
        "rails",
        "station-feed",
        felt={
            "irrigation": [
                (
                    "E Faraday::ConnectionFailed: Failed to open TCP connection to "
                    "station-feed:4567 "
                    '(Connection refused - connect(2) for "station-feed" port 4567)'
                )
            ],
            "harvest": ["E Net::ReadTimeout with #<TCPSocket:(closed)>", "E field {id} skipped"],
        },
        hidden=("station-feed",),
        calm=47,
        bad=8,
    ),
    Story(
        "freight_envoy",
        "the mesh's access log shows a cluster without healthy hosts",
        {
            "edge": Svc("envoy_access", "shipment", "customs tracking"),
            "tracking": Svc("web", "parcel", "customs"),
            "customs": Svc("web", "duty"),
        },
        "zap_iso",
        "customs",
        felt={
            "edge": [
                '"GET /duties/{id} HTTP/1.1" 503 UH 0 19 0 - "-" "{uuid}" "outbound|80||customs"',
                '"POST /duties HTTP/1.1" 503 UF,URX 0 91 {n} - "-" "{uuid}" "outbound|80||customs"',
            ],
            "tracking": ["E duty of parcel {id}: unexpected status 503: no healthy upstream"],
        },
        forms={"edge": "envoy_access"},
        hidden=("customs",),
        calm=72,
        bad=9,
    ),
    Story(
        "press_nginx",
        "the front proxy names its upstream in the error log",
        {
            "front": Svc("access", "page", "comments pages"),
            "pages": Svc("web", "page", "comments"),
            "comments": Svc("web", "comment"),
        },
        "golog",
        "comments",
        felt={
            "front": [
                (
                    "E *{id} connect() failed (111: Connection refused) while connecting to "
                    "upstream, "
                    'client: 10.2.2.{n}, server: www, request: "GET /comments/{id} HTTP/1.1", '
                    'upstream: "http://comments:7000/comments/{id}", host: "www.press.example"'
                ),
                (
                    "E *{id} no live upstreams while connecting to upstream, client: 10.2.2.{n}, "
                    'server: www, upstream: "http://comments/comments/{id}"'
                ),
            ],
            "pages": ['Get "http://comments:7000/count/{id}": context deadline exceeded'],
        },
        forms={"front": "access", "front E": "nginx"},
        hidden=("comments",),
        calm=42,
        bad=19,
    ),
    Story(
        "meter_rdkafka",
        "producers and consumers lose the broker",
        {
            "collector": Svc("worker", "reading", "kafka-2"),
            "alarms": Svc("worker", "alarm", "kafka-2"),
            "exporter": Svc("worker", "file", "kafka-2"),
            "kafka-2": Svc("kafka", "readings"),
        },
        "rfc5424",
        "kafka-2",
        felt={
            "collector": [
                (
                    "E %3|FAIL|rdkafka#producer-1| [thrd:kafka-2:9092/2]: kafka-2:9092/2: "
                    "Connect to "
                    "ipv4#10.5.0.2:9092 failed: Connection refused (after 0ms in state CONNECT)"
                ),
                "E {n} readings kept in the local buffer",
            ],
            "alarms": [
                (
                    "E %4|REQTMOUT|rdkafka#consumer-1| [thrd:kafka-2:9092/2]: Timed out "
                    "FetchRequest "
                    "in flight (after 60{n}ms, timeout #0)"
                )
            ],
            "exporter": ["W kafka-2:9092/2: Disconnected (after {slow}ms in state UP)"],
        },
        hidden=("kafka-2",),
        one_file="syslog",
        calm=59,
        bad=15,
    ),
    Story(
        "gallery_jdbc",
        "Java callers print link failures of the MySQL driver",
        {
            "exhibits": Svc("web", "exhibit", "art-mysql"),
            "tours": Svc("web", "tour", "exhibits art-mysql"),
            "art-mysql": Svc("mysql", "art"),
        },
        "spring",
        "art-mysql",
        felt={
            "exhibits": [
                (
                    "E @o.h.engine.jdbc.spi.SqlExceptionHelper Communications link failure\n\n"
                    "The last packet sent successfully to the server was 0 milliseconds ago.\n"
                    "Caused by: java.net.UnknownHostException: art-mysql"
                ),
            ],
            "tours": [
                (
                    "E @c.m.tours.TourDao "
                    "org.springframework.dao.DataAccessResourceFailureException: "
                    "Unable to acquire JDBC Connection [jdbc:mysql://art-mysql:3306/art]"
                )
            ],
        },
        hidden=("art-mysql",),
        calm=83,
        bad=7,
    ),
    Story(
        "parking_amqp",
        "consumers cannot connect to the message broker",
        {
            "gate": Svc("worker", "entry", "park-rabbit"),
            "pay-machine": Svc("web", "ticket", "park-rabbit"),
            "park-rabbit": Svc("rabbit", "entry"),
        },
        "cloud",
        "park-rabbit",
        felt={
            "gate": [
                "E amqp: dial tcp: lookup park-rabbit: i/o timeout",
                'E Exception (501) Reason: "EOF" while publishing to amqp://park-rabbit:5672/',
            ],
            "pay-machine": [
                "E ticket {id}: connection to park-rabbit:5672 closed, reconnect in 5s"
            ],
        },
        hidden=("park-rabbit",),
        one_file="downloaded-logs.jsonl",
        calm=50,
        bad=11,
    ),
    Story(
        "casino_reqwest",
        "Rust callers print reqwest errors, three services deep",
        {
            "slots-ui": Svc("web", "spin", "slots"),
            "slots": Svc("grpc", "spin", "wallet rng-svc"),
            "wallet": Svc("grpc", "coin", "kyc"),
            "rng-svc": Svc("grpc", "seed"),
            "kyc": Svc("web", "player"),
        },
        "tracing",
        "kyc",
        felt={
            "wallet": [
                (
                    "E @wallet::kyc error sending request for url (http://kyc:8081/player/{id}): "
                    "operation timed out"
                ),
                "W @wallet::kyc player={id} not verified, attempt={n}",
            ],
            "slots": ["E @slots::pay wallet answered 503 Service Unavailable spin={id}"],
            "slots-ui": ["E @slots_ui::http response failed classification=Status code: 502"],
        },
        hidden=("kyc",),
        wait=3,
        calm=88,
        bad=12,
    ),
]
