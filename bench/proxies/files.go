package proxies

// The files of the rivals, as their documentation recommends for a proxy that keeps its
// connections, without access logs, and without the limits that would have them close a
// connection in the middle of a load (nginx closes one after 1,000 requests). With slots
// each limits what is at the service at once, in its own way.

// In Caddy's, a service with an unhealthy_request_count is never well without max_fails.

const caddyFile = `{
	admin off
	auto_https off
	log {
		output discard
	}
	servers {
		protocols h1 h2c
	}
}
http://{{.H1}} {
	bind 127.0.0.1
	reverse_proxy {{.Upstream}} {
{{- if .Slots}}
		unhealthy_request_count {{.Slots}}
		max_fails 1000000
{{- end}}
		transport http {
			versions 1.1
			compression off
			keepalive_idle_conns_per_host 65536
		}
	}
}
`

// haproxyFile is a file whose queue takes so many; "": it has no limit and no queue. A queue
// that is full is a rule, since maxqueue sends what it has no place for to other servers, and
// where there are none into the queue of all of them. The queue can be sorted by deadline
// from release 3.4 on (set-priority-offset); Debian 12 has 2.6, so it is first come first
// served here. haproxy has as many threads as there are processors.
func haproxyFile(depth string) string {
	limit, full := "", ""
	if depth != "" {
		limit, full = " maxconn {{.Slots}}", "\thttp-request deny deny_status 503 if { queue(service) ge "+depth+" }\n"
	}
	return `global
	maxconn 9000
	tune.h2.max-concurrent-streams 4096
defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
	timeout queue 400ms
	option abortonclose
	http-reuse always
frontend h1
	bind {{.H1}}
	default_backend service
frontend h2
	bind {{.H2}} proto h2
	default_backend service
backend service
` + full + `	server one {{.Upstream}}` + limit + `
`
}

const nginxFile = `worker_processes auto;
pid {{.Dir}}/pid;
error_log /dev/null crit;
worker_rlimit_nofile 19000;
events {
	worker_connections 9000;
}
http {
	access_log off;
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	keepalive_requests 1000000000;
	http2_max_concurrent_streams 4096;
	limit_conn_zone $server_name zone=all:1m;
	limit_conn_status 503;
	upstream service {
		server {{.Upstream}} max_fails=0;
		keepalive 4096;
		keepalive_requests 1000000000;
	}
	server {
		server_name all;
		listen {{.H1}};
		listen {{.H2}} http2;
		location / {
{{- if .Slots}}
			limit_conn all {{.Slots}};
{{- end}}
			proxy_pass http://service;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
		}
	}
}
`
