# An HTTP server with one thread, as small services have it: one request at a time, the
# next connection waits in the backlog until this one is closed. With "1.1" it keeps
# connections, and then the first one keeps everybody else out.
import http.server
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/" + sys.argv[1]
    wbufsize = 4096  # header and body in one write, or Nagle's algorithm holds the body for 40 ms

    def do_GET(self):
        time.sleep(0.005)
        body = b"done\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
host, port = server.server_address
print(f"listening on {host} port {port}")
server.serve_forever()
