"""What client libraries print when `orders-db` does not answer: the odd half."""

from loglines import Client

CLIENTS = [
    Client(
        "psycopg",
        "psycopg.OperationalError: failed to resolve host 'orders-db': "
        "[Errno -2] Name or service not known",
    ),
    Client(
        "sqlalchemy",
        '(psycopg2.OperationalError) could not translate host name "orders-db" to address: '
        "Temporary failure in name resolution\n\n"
        "(Background on this error at: https://sqlalche.me/e/20/e3q8)",
    ),
    Client(
        "hikaricp",
        "java.sql.SQLTransientConnectionException: orders-db - Connection is not available, "
        "request timed out after 30000ms (total=10, active=10, idle=0, waiting=7)",
    ),
    Client(
        "go-net-dial",
        "dial tcp: lookup orders-db.shop.svc.cluster.local on 10.96.0.10:53: server misbehaving",
    ),
    Client(
        "axios",
        "AxiosError: connect ECONNREFUSED 10.2.3.4:8080\n"
        "    at AxiosError.from (/app/node_modules/axios/dist/node/axios.cjs:837:14)\n"
        "  config: { url: 'http://orders-db:8080/orders/17', method: 'get', timeout: 3000 },\n"
        "  code: 'ECONNREFUSED'",
    ),
    Client(
        "mysql-client",
        "ERROR 2003 (HY000): Can't connect to MySQL server on 'orders-db:3306' (110)",
    ),
    Client(
        "mongodb-java",
        "com.mongodb.MongoTimeoutException: Timed out after 30000 ms while waiting to connect. "
        "Client view of cluster state is {type=UNKNOWN, servers=[{address=orders-db:27017, "
        "type=UNKNOWN, state=CONNECTING, exception={com.mongodb.MongoSocketOpenException: "
        "Exception opening socket}, caused by {java.net.ConnectException: Connection refused}}]",
    ),
    Client(
        "redis-py",
        "redis.exceptions.ConnectionError: Error 111 connecting to orders-db:6379. "
        "Connection refused.",
    ),
    Client(
        "lettuce",
        "io.lettuce.core.RedisConnectionException: Unable to connect to "
        "orders-db/<unresolved>:6379\n"
        "Caused by: io.netty.channel.AbstractChannel$AnnotatedConnectException: "
        "Connection refused: orders-db/10.2.3.4:6379",
    ),
    Client(
        "librdkafka",
        "%3|1741686321.204|FAIL|orders#producer-1| [thrd:orders-db:9092/bootstrap]: "
        "orders-db:9092/bootstrap: Connect to ipv4#10.2.3.4:9092 failed: Connection refused "
        "(after 0ms in state CONNECT)",
    ),
    Client(
        "sarama",
        "kafka: client has run out of available brokers to talk to: dial tcp: lookup orders-db "
        "on 10.96.0.10:53: read udp 10.2.0.9:40123->10.96.0.10:53: i/o timeout",
    ),
    Client(
        "pika",
        "broker amqp://orders:***@orders-db:5672/%2F: AMQPConnectionWorkflowFailed: 1 exceptions "
        "in all; last exception - AMQPConnectorSocketConnectError: ConnectionRefusedError(111, "
        "'Connection refused'); first exception - None",
    ),
    Client(
        "requests",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='orders-db', port=8080): "
        "Max retries exceeded with url: /orders/17 (Caused by NewConnectionError("
        "'<urllib3.connection.HTTPConnection object at 0x7f1c2c0b1d90>: Failed to establish a "
        "new connection: [Errno 111] Connection refused'))",
    ),
    Client(
        "aiohttp",
        "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host orders-db:8080 "
        "ssl:default [Connect call failed ('10.2.3.4', 8080)]",
    ),
    Client(
        "curl",
        "curl: (7) Failed to connect to orders-db port 8080 after 3 ms: Couldn't connect to server",
    ),
    Client(
        "grpc-java",
        "io.grpc.StatusRuntimeException: UNAVAILABLE: io exception\n"
        "\tat io.grpc.stub.ClientCalls.toStatusRuntimeException(ClientCalls.java:271)\n"
        "Caused by: io.netty.channel.AbstractChannel$AnnotatedConnectException: "
        "finishConnect(..) failed: Connection refused: orders-db/10.2.3.4:9090",
    ),
    Client(
        "netty",
        "io.netty.channel.ConnectTimeoutException: connection timed out after 3000 ms: "
        "orders-db/10.2.3.4:5432",
    ),
    Client(
        "okhttp",
        "java.net.ConnectException: Failed to connect to orders-db/10.2.3.4:8080\n"
        "\tat okhttp3.internal.connection.RealConnection.connectSocket(RealConnection.kt:297)",
    ),
    Client(
        "web-client",
        "org.springframework.web.reactive.function.client.WebClientResponseException"
        "$ServiceUnavailable: 503 Service Unavailable from GET http://orders-db:8080/orders/17",
    ),
    Client(
        "etcd-client",
        '{"level":"warn","logger":"etcd-client","caller":"v3/retry_interceptor.go:62",'
        '"msg":"retrying of unary invoker failed",'
        '"target":"etcd-endpoints://0xc00034e1c0/orders-db:2379","attempt":0,'
        '"error":"rpc error: code = DeadlineExceeded desc = latest balancer error: last '
        'connection error: connection error: desc = \\"transport: Error while dialing dial tcp '
        '10.2.3.4:2379: connect: connection refused\\""}',
    ),
    Client(
        "nginx",
        "no live upstreams while connecting to upstream, client: 10.2.0.9, server: _, request: "
        '"GET /orders/17 HTTP/1.1", upstream: "http://orders-db/orders/17", host: "shop.example"',
    ),
    Client(
        "cassandra-python",
        "cassandra.cluster.NoHostAvailable: ('Unable to connect to any servers', "
        "{'orders-db:9042': ConnectionRefusedError(111, \"Tried connecting to "
        "[('10.2.3.4', 9042)]. Last error: Connection refused\")})",
    ),
    Client(
        "ruby-faraday",
        "Faraday::ConnectionFailed: Failed to open TCP connection to orders-db:8080 "
        '(Connection refused - connect(2) for "orders-db" port 8080)',
    ),
    Client(
        "php-pdo",
        "PDOException: SQLSTATE[HY000] [2002] php_network_getaddresses: getaddrinfo for "
        "orders-db failed: Name or service not known in /app/src/Orders.php:41",
    ),
    Client(
        "postgrex",
        "Postgrex.Protocol (#PID<0.412.0>) failed to connect: ** (DBConnection.ConnectionError) "
        "tcp connect (orders-db:5432): connection refused - :econnrefused",
    ),
]
