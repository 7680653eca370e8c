"""What client libraries print when `orders-db` does not answer: the even half."""

from loglines import Client

CLIENTS = [
    Client(
        "libpq",
        'connection to server at "orders-db" (10.2.3.4), port 5432 failed: Connection refused\n'
        "\tIs the server running on that host and accepting TCP/IP connections?",
    ),
    Client(
        "asyncpg",
        "Cannot connect to postgresql://orders:***@orders-db:5432/orders: "
        "ConnectionRefusedError: [Errno 111] Connect call failed ('10.2.3.4', 5432)",
    ),
    Client(
        "jdbc-postgresql",
        "org.postgresql.util.PSQLException: Connection to orders-db:5432 refused. Check that the "
        "hostname and port are correct and that the postmaster is accepting TCP/IP connections.",
    ),
    Client(
        "pgx",
        "failed to connect to `host=orders-db user=orders database=orders`: "
        "dial error (dial tcp 10.2.3.4:5432: connect: connection refused)",
    ),
    Client(
        "node-postgres",
        "Error: getaddrinfo ENOTFOUND orders-db\n"
        "    at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:122:26) {\n"
        "  errno: -3008,\n  code: 'ENOTFOUND',\n"
        "  syscall: 'getaddrinfo',\n  hostname: 'orders-db'\n}",
    ),
    Client(
        "pymysql",
        "pymysql.err.OperationalError: (2003, \"Can't connect to MySQL server on 'orders-db' "
        '([Errno 111] Connection refused)")',
    ),
    Client(
        "pymongo",
        "pymongo.errors.ServerSelectionTimeoutError: orders-db:27017: [Errno 111] Connection "
        "refused (configured timeouts: socketTimeoutMS: 20000.0ms, connectTimeoutMS: 20000.0ms), "
        "Timeout: 30s, Topology Description: <TopologyDescription id: 67d00b1ac3f1e0a2b4c5d6e7, "
        "topology_type: Unknown, servers: [<ServerDescription ('orders-db', 27017) server_type: "
        "Unknown, rtt: None, error=AutoReconnect('orders-db:27017: [Errno 111] Connection refused "
        "(configured timeouts: socketTimeoutMS: 20000.0ms, connectTimeoutMS: 20000.0ms)')>]>",
    ),
    Client(
        "mongodb-node",
        "MongoNetworkError: failed to connect to server [orders-db:27017] on first connect "
        "[Error: connect ETIMEDOUT 10.2.3.4:27017]",
    ),
    Client(
        "ioredis",
        "[ioredis] Unhandled error event: Error: getaddrinfo EAI_AGAIN orders-db\n"
        "    at GetAddrInfoReqWrap.onlookup [as oncomplete] (node:dns:109:26)",
    ),
    Client(
        "jedis",
        "redis.clients.jedis.exceptions.JedisConnectionException: "
        "Failed to connect to orders-db:6379.",
    ),
    Client(
        "kafka-java",
        "[Producer clientId=orders-1] Connection to node -1 (orders-db/10.2.3.4:9092) could not "
        "be established. Node may not be available.",
    ),
    Client(
        "kafka-python",
        "Connect attempt to <BrokerConnection node_id=bootstrap-0 host=orders-db:9092 "
        "<connecting> [IPv4 ('10.2.3.4', 9092)]> returned error 111. Disconnecting.",
    ),
    Client(
        "celery",
        "consumer: Cannot connect to amqp://orders:**@orders-db:5672//: "
        "[Errno 111] Connection refused.\nTrying again in 2.00 seconds... (1/100)\n",
    ),
    Client(
        "httpx",
        "httpx.HTTPStatusError: Server error '503 Service Unavailable' for url "
        "'http://orders-db:8080/orders/17'\nFor more information check: "
        "https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/503",
    ),
    Client(
        "go-net-http",
        'Get "http://orders-db:8080/orders/17": context deadline exceeded '
        "(Client.Timeout exceeded while awaiting headers)",
    ),
    Client(
        "grpc-go",
        "rpc error: code = Unavailable desc = connection error: desc = "
        '"transport: Error while dialing: dial tcp: lookup orders-db on 10.96.0.10:53: '
        'no such host"',
    ),
    Client(
        "grpc-python",
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
        '\tdetails = "DNS resolution failed for orders-db:9090: C-ares status is not '
        'ARES_SUCCESS qtype=A name=orders-db is_balancer=0: Domain name not found"\n'
        '\tdebug_error_string = "UNKNOWN:DNS resolution failed for orders-db:9090 '
        '{grpc_status:14}"\n>',
    ),
    Client(
        "java-unknown-host",
        "java.net.UnknownHostException: orders-db: Name or service not known\n"
        "\tat java.base/java.net.Inet6AddressImpl.lookupAllHostAddr(Native Method)\n"
        "\tat java.base/java.net.InetAddress.getAllByName(InetAddress.java:1509)",
    ),
    Client(
        "rest-template",
        "org.springframework.web.client.ResourceAccessException: I/O error on GET request for "
        '"http://orders-db:8080/orders/17": Connection refused; nested exception is '
        "java.net.ConnectException: Connection refused",
    ),
    Client(
        "feign",
        "feign.RetryableException: Read timed out executing GET http://orders-db:8080/orders/17\n"
        "\tat feign.FeignException.errorExecuting(FeignException.java:268)\n"
        "Caused by: java.net.SocketTimeoutException: Read timed out",
    ),
    Client(
        "elasticsearch-py",
        "GET http://orders-db:9200/orders/_search [status:N/A request:10.009s]\n"
        "elasticsearch.exceptions.ConnectionTimeout: ConnectionTimeout caused by - "
        "ReadTimeoutError(HTTPConnectionPool(host='orders-db', port=9200): "
        "Read timed out. (read timeout=10))",
    ),
    Client(
        "envoy",
        '[2025-03-11T09:45:07.311Z] "GET /orders/17 HTTP/1.1" 503 UF '
        "upstream_reset_before_response_started{connection_failure,delayed_connect_error:_111} - "
        '"delayed_connect_error:_111" 0 152 3 - "-" "Go-http-client/1.1" '
        '"0b9a7c1e-53a2-9d5f-8a0e-3f0c8d1b7a66" "orders-db:8080" "10.2.3.4:8080" '
        "outbound|8080||orders-db.shop.svc.cluster.local - 10.2.3.4:8080 10.2.0.9:51244 - default",
    ),
    Client(
        "haproxy",
        "Server orders-db/orders-db1 is DOWN, reason: Layer4 connection problem, info: "
        '"Connection refused", check duration: 0ms. 0 active and 0 backup servers left. '
        "3 sessions active, 0 requeued, 0 remaining in queue.",
    ),
    Client(
        "ef-core-npgsql",
        "An error occurred using the connection to database 'orders' on server "
        "'tcp://orders-db:5432'.\nNpgsql.NpgsqlException (0x80004005): "
        "Failed to connect to 10.2.3.4:5432\n ---> System.Net.Sockets.SocketException (111): "
        "Connection refused",
    ),
    Client(
        "reqwest",
        "error sending request for url (http://orders-db:8080/orders/17): error trying to "
        "connect: tcp connect error: Connection refused (os error 111)",
    ),
]
