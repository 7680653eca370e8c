"""What services print on a usual day, by kind of service."""

LINES = {
    "web": [
        "I GET /v1/{noun}s/{id} 200 {ms}ms",
        "I GET /api/{noun}/{id} -> 200 in {ms} ms",
        "I POST /v1/{noun}s 201 {ms}ms user={user}",
        "I {noun} {id} updated by {user}",
        "I Completed 200 OK in {ms}ms",
        "I handled request id={hex} status=200 duration={ms}ms",
        "I loaded {noun} {id} from {dep} in {ms}ms",
        "I call to {dep} finished, status=200 took={ms}ms",
        "I {noun} {id} created",
        "I {noun} list returned {n} items for {user}",
        "I request {uuid} completed",
        "I session refreshed for {user}",
        "I health check ok",
        "D cache hit for {noun}:{id}",
        "D sending request {hex} to {dep}",
        "I GET /v1/{noun}s?page={n} 200 {ms}ms",
        "I validated {noun} {id}, {n} rules applied",
    ],
    "grpc": [
        "I finished unary call grpc.code=OK grpc.method=Get{noun} grpc.time_ms={ms}",
        "I finished unary call grpc.code=OK grpc.method=List{noun}s grpc.time_ms={ms}",
        "I {noun} {id} resolved in {ms}ms",
        "I served {noun} {id} trace={hex}",
        "I stored {noun} {id} via {dep} ({ms}ms)",
        "D subchannel for {dep} is READY",
        "I {n} {noun}s flushed to {dep}",
        "I refreshed {noun} snapshot, {big} entries",
    ],
    "worker": [
        "I picked {noun} {id} from the queue",
        "I {noun} {id} processed in {ms}ms",
        "I job {uuid} done",
        "I batch of {n} {noun}s committed",
        "I {dep} accepted {n} {noun}s",
        "I queue depth {n}, lag 0s",
        "D ack delivery tag {big}",
        "I next run scheduled in 30s",
    ],
    "postgres": [
        "I checkpoint starting: time",
        "I checkpoint complete: wrote {n} buffers (0.2%); write={n}.{n} s, sync=0.004 s",
        "I connection received: host=10.4.2.{n} port=4{big}",
        "I connection authorized: user={noun} database={noun} SSL enabled",
        'I automatic vacuum of table "{noun}.public.{noun}_event": index scans: 1',
        "I disconnection: session time: 0:00:{n}.482 user={noun} database={noun}",
    ],
    "mysql": [
        "I Access granted for user '{noun}'@'10.4.2.{n}'",
        "I Aborted connection {big} to db: '{noun}' user: '{noun}' (Got timeout reading packets)",
        "I InnoDB: page_cleaner: flushed {n} pages",
        "I Event Scheduler: purge_{noun} finished in {ms} ms",
    ],
    "redis": [
        "I {n} changes in 300 seconds. Saving...",
        "I Background saving started by pid {big}",
        "I Background saving terminated with success",
        "I DB saved on disk",
        "D {n} clients connected (0 replicas), {big}432 bytes in use",
    ],
    "kafka": [
        "I [GroupCoordinator 1]: Stabilized group {noun}-consumers generation {n}",
        "I [ProducerStateManager partition={noun}-{n}] Wrote producer snapshot at offset {big}",
        "I [UnifiedLog partition={noun}-{n}, dir=/data] Rolled new log segment at offset {big}",
        "I [LocalLog partition={noun}-{n}, dir=/data] Deleted segment files for offset {big}",
    ],
    "mongo": [
        "I Connection accepted",
        "I Connection ended",
        "I client metadata",
        "I Slow query ns={noun}.events planSummary=IXSCAN durationMillis={ms}",
        "I WiredTiger checkpoint finished in {ms} ms",
    ],
    "elastic": [
        "I @o.e.c.m.MetadataMappingService [{noun}s/{hex}] update_mapping [_doc]",
        "I @o.e.c.m.MetadataCreateIndexService [{noun}s-{n}] creating index, cause [api]",
        "I @o.e.m.j.JvmGcMonitorService [gc][{big}] overhead, spent [2{n}ms] in the last [1s]",
        "D @o.e.i.e.Engine flush of shard [{noun}s][{n}] done in {ms}ms",
    ],
    "solr": [
        (
            "I @o.a.s.c.S.Request [{noun}s] webapp=/solr path=/select params={q={noun}} hits={n} "
            "status=0 QTime={ms}"
        ),
        "I @o.a.s.u.DirectUpdateHandler2 start commit{optimize=false,openSearcher=true}",
        "I @o.a.s.u.DirectUpdateHandler2 end_commit_flush",
    ],
    "etcd": [
        "I compacted raft log at {big}00",
        "I finished scheduled compaction, took {ms}ms",
        "I saved snapshot to disk, index {big}",
        "D range request for {noun} {hex} took {ms}ms",
    ],
    "vault": [
        "I @expiration renewed lease {hex}",
        "I @http answered path=secret/data/{noun}/{n} in {ms}ms",
        "I @audit request accepted id={uuid}",
        "D @core pinned token accessor {hex}",
    ],
    "rabbit": [
        "I accepting AMQP connection (10.2.0.{n}:5{big} -> 10.2.0.9:5672)",
        "I connection (10.2.0.{n}:5{big}): user '{noun}' authenticated and granted access",
        "I closing AMQP connection (10.2.0.{n}:5{big} -> 10.2.0.9:5672, vhost: '/')",
        "D queue '{noun}.out' in vhost '/': {n} messages ready",
    ],
    "cassandra": [
        "I Completed flushing /data/inbox/{noun}-{hex}/na-{n}-big-Data.db ({n}.1MiB)",
        "I Compacted (uuid-{hex}) 4 sstables to [/data/na-{n}-big] in {ms}ms",
        "D Deleting sstable: /data/inbox/na-{n}-big",
        "I Writing Memtable-{noun}@{big}(12.1MiB serialized bytes)",
    ],
    "pbx": [
        'I pbx.c: Executing [{id}@inbound:1] Answer("PJSIP/trunk-{hex}", "") in new stack',
        "I res_pjsip/pjsip_options.c: Endpoint {n}01 is now Reachable",
        "I bridge_channel.c: Channel PJSIP/trunk-{hex} left 'simple_bridge' basic-bridge <{uuid}>",
        "I app_dial.c: Called PJSIP/{n}02",
    ],
    "mssql": [
        "I Log was backed up. Database: Lab, first LSN: {n}:{big}:1, last LSN: {n}:{big}9:1.",
        "I CHECKDB for database 'Lab' finished without errors.",
        "I Starting up database 'Lab_archive_{n}'.",
    ],
    "nfs": [
        "I @rpc.mountd authenticated mount request from 10.3.0.{n}:{big} for /export/{noun}",
        "I @nfsd {n} threads busy, {big} calls",
        "I @smartd Device: /dev/sdb [SAT], SMART Usage Attribute: 194 Temperature changed to {n}",
        "I @systemd Started Clean old files of /export.",
    ],
    "dns": [
        'I 10.244.1.{n}:4{big} - {big} "A IN {noun}.svc.cluster.local. udp 54 false 512" NOERROR',
        (
            'I 10.244.2.{n}:3{big} - {big} "AAAA IN {noun}.svc.cluster.local. udp 54 false '
            '512" NOERROR'
        ),
        'I 10.244.1.{n}:5{big} - {big} "A IN api.{noun}s.example. udp 41 false 512" NOERROR',
    ],
    "access": [
        '"GET /{noun}s/{id} HTTP/1.1" 200 {big} "-" "Mozilla/5.0 (X11; Linux x86_64)" 0.0{n}',
        '"POST /{noun}s HTTP/1.1" 201 {n}1 "-" "okhttp/4.12.0" 0.1{n}',
        '"GET /static/app.{hex}.js HTTP/2.0" 304 0 "-" "Mozilla/5.0 (iPhone)" 0.001',
        '"GET /{noun}s?page={n} HTTP/1.1" 200 {big} "-" "Mozilla/5.0 (Windows NT 10.0)" 0.0{n}',
    ],
    "envoy_access": [
        '"GET /{noun}s/{id} HTTP/1.1" 200 - 0 {big} {ms} {n} "-" "{uuid}" "outbound|80||{dep}"',
        '"POST /{noun}s HTTP/1.1" 201 - {n}9 {n} {ms} {n} "-" "{uuid}" "outbound|80||{dep}"',
    ],
    "haproxy": [
        'public {dep}/{dep}1 0/0/1/{ms}/{ms} 200 {big} - - ---- "GET /{noun}"',
        'public {dep}/{dep}2 0/0/0/{ms}/{ms} 200 {big} - - ---- "PUT /{noun}"',
    ],
}

NOISE = {
    "web": [
        "W {noun} {id} not found",
        "W request {hex} was slow: 1{ms} ms",
        "W invalid token from 10.9.3.{n}, answering 401",
        "E bad request: field 'amount' must be a number",
        "W retrying call to {dep} (attempt 2 of 3)",
        "W client closed the connection before the answer was sent",
    ],
    "grpc": [
        "W finished unary call grpc.code=NotFound grpc.method=Get{noun} grpc.time_ms={ms}",
        "W finished unary call grpc.code=Canceled grpc.method=List{noun}s",
    ],
    "worker": ["W {noun} {id} seen twice, skipped", "W {noun} {id} rejected: unknown kind"],
    "postgres": ['E duplicate key value violates unique constraint "{noun}_pkey"'],
    "access": ['"GET /favicon.ico HTTP/1.1" 404 153 "-" "curl/8.4.0" 0.000'],
    "mysql": ["W Aborted connection {big} to db: '{noun}' (Got an error reading packets)"],
}

STORES = ("postgres", "mysql", "redis", "kafka", "mongo", "mssql", "nfs", "etcd", "cassandra")
