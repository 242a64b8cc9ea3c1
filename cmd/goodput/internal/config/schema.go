package config

import (
	"maps"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goodput/goodput/cmd/goodput/internal/keys"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// Patterns of names: see isLabel, httpguts.ValidHeaderFieldName and urlPath.
const (
	labelPattern = `^[A-Za-z0-9_.-]+$`
	tokenPattern = "^ *[!#$%&'*+.^_`|~0-9A-Za-z-]+ *$"
	pathPattern  = `^ *[/]`
	matchPattern = `^ *[/][^*?{}()|^\[\]\\]*$`
)

// Schema is what a policy file looks like, for editors: every key with what it means, its
// unit, its range and its default. It takes whatever Read takes; what contradicts what, Read
// alone says.
func Schema() *jsonschema.Schema {
	defs := policy.Definitions()
	maps.Copy(defs, map[string]*jsonschema.Schema{"upstream": upstreamSchema(), "listener": listenerSchema(), "key": keySchema()})
	for _, k := range partKeys() {
		defs["class_"+k.Name] = k.Value
	}
	root := keys.Object("Policy file of goodput serve: what listens, what is behind it, and how the requests in between are told apart, limited and refused. Without classes the file is one class, whose keys stand at the top.", 1,
		append([]keys.Key{
			{Name: "version", Value: keys.Whole("Of the format.", 1, 1)},
			{Name: "listen", Value: keys.Default(keys.Several("Where clients connect: an address, an address with what there is beside it, or a list of them. A change needs a restart.", maxListeners, keys.Ref("listener", "")), DefaultListen)},
			{Name: "upstream", Value: keys.Ref("upstream", "The service behind, if there is one: it, or upstreams, is needed.")},
			{Name: "upstreams", Value: upstreamsSchema()},
			{Name: "trusted_proxies", Value: keys.List("Peers that are believed: addresses and ranges, such as 10.0.0.0/8. Their X-Forwarded-*, X-Real-IP and Forwarded are kept, X-Request-Start counts as time already spent, and headers that say tenant, user, priority, cost or size count. From anybody else those of an edge are replaced, so behind nginx or an ingress name it here. Without it nobody.", maxProxies, keys.Text("", ""))},
			{Name: "processes", Value: keys.Default(keys.Whole("How many processes run this file before the same servers. Each has the limits for itself; it is what goodput check multiplies by.", 1, MaxProcesses), 1)},
			{Name: "defaults", Value: keys.Object("What each class has unless it says otherwise.", 0, part()...)},
			{Name: "classes", Value: keys.List("Kinds of requests with a limit and a queue each, asked in this order; the last has no match and takes what is left.", maxClasses, classSchema())},
		}, part()[1:]...)...) // upstream is the service there, and not its name
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "goodput policy file"
	root.OneOf = []*jsonschema.Schema{{Required: []string{"upstream"}}, {Required: []string{"upstreams"}}}
	beside := map[string]*jsonschema.Schema{}
	for _, k := range part()[1:] {
		beside[k.Name] = keys.None()
	}
	root.If = &jsonschema.Schema{Required: []string{"classes"}}
	root.Then = &jsonschema.Schema{Properties: beside}
	root.Else = &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"defaults": keys.None()}}
	root.Defs = defs
	return root
}

func listenerSchema() *jsonschema.Schema {
	address := "host:port, :port, or unix: with the path of a socket."
	return keys.Either("", keys.String("Where: "+address, `:`), keys.Object("A listener.", 1,
		keys.Key{Name: "address", Value: keys.String("Where: "+address, `:`)},
		keys.Key{Name: "tls", Value: keys.Object("Files in PEM, relative to the working directory, read again with each reload. Without it there is no TLS.", 2,
			keys.Key{Name: "cert", Value: keys.Text("Certificate, with what is between it and the root.", "")},
			keys.Key{Name: "key", Value: keys.Text("Its private key.", "")},
			keys.Key{Name: "client_ca", Value: keys.Text("Authorities for the certificates of clients, which every client then has to show. Without it none is asked for.", "")},
		)},
		keys.Key{Name: "protocols", Value: keys.Default(keys.Several("What is spoken: http1, and h2, which is HTTP/2, without TLS by prior knowledge.", 2, keys.Word("", "http1", "h2")), []string{"http1", "h2"})},
		keys.Key{Name: "backlog", Value: keys.Whole("Connections that the kernel keeps until they are accepted, cut by net.core.somaxconn. Without it that.", 1, maxBacklog)},
		keys.Key{Name: "max_connections", Value: keys.Default(keys.Whole("Connections open at once; beyond that nothing is accepted, and the backlog fills.", 1, maxConnections), DefaultMaxConnections)},
		keys.Key{Name: "max_streams", Value: keys.Default(keys.Whole("Requests that one HTTP/2 connection may have in flight.", 1, maxStreams), DefaultMaxStreams)},
		keys.Key{Name: "pause_accepts", Value: keys.Default(keys.Duration("Between two accepts while every class is in a standing overload.", 0, maxPause), "0s")},
		keys.Key{Name: "header_timeout", Value: keys.Default(keys.Duration("For a whole header.", shortest, longest), "10s")},
		keys.Key{Name: "idle_timeout", Value: keys.Default(keys.Duration("How long a connection without a request stays: above that of the balancer in front, so that it hangs up first.", shortest, longest), "10m20s")},
		keys.Key{Name: "max_header", Value: keys.Default(keys.Size("Of a request, 4KiB to 16MiB."), "64KiB")},
	))
}

func upstreamsSchema() *jsonschema.Schema {
	s := keys.Mapping("The services behind, by their names, if there are several.", labelPattern, keys.Ref("upstream", ""))
	s.MinProperties, s.MaxProperties = jsonschema.Ptr(1), jsonschema.Ptr(maxUpstreams)
	return s
}

func upstreamSchema() *jsonschema.Schema {
	url := func(about string) *jsonschema.Schema {
		return keys.String(about, `^ *(http|https|h2c):[/][/]`)
	}
	server := func() *jsonschema.Schema {
		return keys.Either("", url(""), keys.Object("A server.", 1,
			keys.Key{Name: "url", Value: url("Where it listens: http://, https:// or h2c://.")},
			keys.Key{Name: "limit", Value: keys.Whole("Requests that it runs at once, of all classes together. Where each server says one, what the classes have together may not be above their sum.", 1, limit.Max)},
		))
	}
	servers := func() *jsonschema.Schema {
		return keys.List("Its servers: one queue, and the next free slot of any that is well takes the next request.", maxServers, server())
	}
	return keys.Either("A service: a URL, a list of servers, or servers with how they are watched.",
		url("Where it listens: http://, https:// or h2c://; a path, as in http://host/app, is put before that of a request. gRPC is sent as HTTP/2 to http:// too, and an upgrade as HTTP/1.1 to each."), servers(), keys.Object("", 1,
			keys.Key{Name: "servers", Value: keys.Either("", servers(), server())},
			keys.Key{Name: "health", Value: keys.Either("How a server is asked whether it is well: a path, or a path with how often. Without it one that failed is tried by connecting to it.", keys.String("", pathPattern), keys.Object("", 1,
				keys.Key{Name: "path", Value: keys.String("Of the question; any answer of 200 to 399 is well.", pathPattern)},
				keys.Key{Name: "interval", Value: keys.Default(keys.Duration("Between two questions.", minInterval, maxInterval), "2s")},
				keys.Key{Name: "timeout", Value: keys.Default(keys.Duration("For the answer, at most the interval.", shortest, maxInterval), "1s")},
				keys.Key{Name: "fall", Value: keys.Default(keys.Whole("Bad answers in a row after which it is not well.", 1, maxInARow), DefaultFall)},
				keys.Key{Name: "rise", Value: keys.Default(keys.Whole("Good answers in a row after which it is.", 1, maxInARow), DefaultRise)},
			))},
			keys.Key{Name: "failures", Value: keys.Default(keys.Whole("Requests in a row without an answer after which a server is not well. A refusal is an answer.", 1, maxFailures), DefaultFailures)},
			keys.Key{Name: "slow_start", Value: keys.Default(keys.Duration("How long a server that is back takes to have all of its share.", 0, maxSlowStart), "5s")},
			keys.Key{Name: "max_absence", Value: keys.Default(keys.Duration("How long a request may wait while no server is well; max_wait, which is the objective unless said otherwise, bounds it as any wait.", shortest, longest), "1s")},
			keys.Key{Name: "forward", Value: keys.String("Header that tells the service how much time is left of a request whose caller used none, beside X-Request-Start, which says when it arrived: expect-within, grpc-timeout, connect-timeout-ms, x-envoy-expected-rq-timeout-ms, or none. Without it X-Envoy-Expected-Rq-Timeout-Ms, and Grpc-Timeout for gRPC.", `^(?i:`+strings.Join(forwards, "|")+`)$`)},
			keys.Key{Name: "forward_only", Value: keys.Bool("Forward takes the place of the header that the caller used, and is not beside it.")},
		))
}

func classSchema() *jsonschema.Schema {
	header := keys.Mapping("Headers that must all be there, each with this value; * is any.", tokenPattern, keys.Text("", ""))
	header.MaxProperties = jsonschema.Ptr(maxList)
	return keys.Object("A class.", 1, append([]keys.Key{
		{Name: "name", Value: keys.Text("Of its metrics: letters, digits, _, - and ., at most 64.", labelPattern)},
		{Name: "match", Value: keys.Object("Which requests it takes: all that is given must hold, and of each list one. Only the last class has none.", 0,
			keys.Key{Name: "host", Value: keys.Several("Without port; *.example.com is every name below it.", maxList, keys.Text("", ""))},
			keys.Key{Name: "path", Value: keys.Several("The path itself and all below it, by whole segments: /api has /api/x, and not /apiary. No pattern.", maxList, keys.String("", matchPattern))},
			keys.Key{Name: "method", Value: keys.Several("In capitals; GET is also HEAD.", maxList, keys.Text("", tokenPattern))},
			keys.Key{Name: "header", Value: header},
			keys.Key{Name: "content_type", Value: keys.Several("Without parameters; application/grpc is also application/grpc+proto.", maxList, keys.String("", "/"))},
		)},
	}, part()...)...)
}

// part are the keys of a class that the defaults have, too, and a file without classes,
// upstream first.
func part() []keys.Key {
	all := partKeys()
	for i := range all {
		all[i].Value = keys.Ref("class_"+all[i].Name, "")
	}
	return all
}

// partKeys are those keys with what they mean.
func partKeys() []keys.Key {
	all := append([]keys.Key{
		{Name: "upstream", Value: keys.Text("Name of one of the upstreams; where there is one it is that.", labelPattern)},
		{Name: "mode", Value: keys.Default(keys.Word("What is counted: requests, whose time to the header is a sample; streams, which are held to their end, need a limit that is a number and have no queue; or connections, which have no limit but that of the listeners.", modes...), modes[0])},
	}, policy.Keys()...)
	all = append(all,
		keys.Key{Name: "observe", Value: keys.Bool("Decide and count, but refuse nothing and let nobody wait. The limit should then be a number.")},
		keys.Key{Name: "deadline_headers", Value: keys.List("Headers in which callers say how long they wait, beside Grpc-Timeout, Connect-Timeout-Ms, X-Envoy-Expected-Rq-Timeout-Ms and Expect-Within.", maxHeaders, keys.Object("", 2,
			keys.Key{Name: "name", Value: keys.Text("Of the header.", tokenPattern)},
			keys.Key{Name: "format", Value: keys.Word("Milliseconds, seconds, a duration as in this file, as gRPC writes it, a point in time in milliseconds since 1970, or as Finagle writes it.", formats...)},
		))},
		keys.Key{Name: "trust_deadline", Value: keys.List("Peers whose headers may say more than deadline_cap: addresses and ranges.", maxProxies, keys.Text("", ""))},
		keys.Key{Name: "hop_margin", Value: keys.Default(keys.Duration("Taken off the time that is left before it is forwarded: for the way there and back.", 1, maxMargin), goodputhttp.HopMargin.String())},
		keys.Key{Name: "tenant", Value: keys.Ref("key", "Who sends a request. Who is told apart has an equal share of the limit, unless tenants says otherwise.")},
		keys.Key{Name: "user", Value: keys.Ref("key", "For whom it is: in an overload the same users are refused everywhere.")},
		keys.Key{Name: "priority", Value: keys.Default(keys.Either("Who goes first, and who is refused first.", keys.Word("", priorities...), keys.Object("", 1,
			keys.Key{Name: "header", Value: keys.Text("That says it, in one of these words, from trusted_proxies.", tokenPattern)},
			keys.Key{Name: "default", Value: keys.Default(keys.Word("Without the header, from anybody else, and of another word.", priorities...), priorities[1])},
		)), priorities[1])},
		keys.Key{Name: "cost", Value: keys.Default(amountSchema("Units of the limit that a request holds while it runs.", limit.Max), 1)},
		keys.Key{Name: "size", Value: amountSchema("Amount of work, such as tokens or rows: it scales the service time that is expected. Without it the cost.", maxSize)},
		keys.Key{Name: "probes", Value: keys.List("Paths of health probes that are neither limited nor counted, beside those that need no word here: GET or HEAD of /livez, /readyz, /healthz and /health, the probes of Kubernetes and of Google's balancers by their user agent, and gRPC's health service.", maxProbes, keys.String("", matchPattern))},
		keys.Key{Name: "overload_status", Value: keys.Default(&jsonschema.Schema{Enum: []any{503, 429}, Description: "What a request is answered that found no place: 503, or 429 for clients that take 503 for a broken server."}, 503)},
		keys.Key{Name: "markers", Value: keys.Several("What refusals carry beside Goodput-Rejected, for the retries of other systems.", len(markers), keys.Word("", markers...))},
		keys.Key{Name: "server_timing", Value: keys.Bool("Every answer says in Server-Timing how long its request has waited.")},
		keys.Key{Name: "max_body", Value: keys.Size("Of a request; beyond it 413. Without it any.")},
		keys.Key{Name: "max_upgraded", Value: keys.Default(keys.Whole("Connections that are upgraded at once, such as WebSockets.", 1, maxUpgraded), goodputhttp.DefaultMaxUpgraded)},
		keys.Key{Name: "slow_client", Value: keys.Default(keys.Duration("How long a request that holds a slot may wait for its client in all.", shortest, longest, "none"), "10s")},
		keys.Key{Name: "finish", Value: keys.Default(keys.Duration("For a service that does not notice when it is hung up on: how long a request that nobody waits for keeps its slot until the service has answered.", 0, maxFinish), "0s")},
		keys.Key{Name: "idle", Value: keys.Duration("How long nothing may move in a stream or an upgraded connection. Without it for ever.", shortest, longest, "none")},
		keys.Key{Name: "total", Value: keys.Duration("How long a stream or an upgraded connection may last. Without it for ever.", shortest, longest, "none")},
	)
	return all
}

func keySchema() *jsonschema.Schema {
	return keys.Either("address, the network of the client behind trusted proxies; tls, the name in its certificate; a header, from trusted_proxies; or none.",
		keys.Word("", "none", "address", "tls"),
		keys.Object("", 1, keys.Key{Name: "header", Value: keys.Text("That says it: an id, not a secret, since it is shown to operators. A request without it, or from anybody but trusted_proxies, is of nobody: with tenants, one of the others.", tokenPattern)}),
		keys.Object("", 1, keys.Key{Name: "address", Value: keys.Object("Bits of the network.", 0,
			keys.Key{Name: "v4", Value: keys.Default(keys.Whole("Of an IPv4 address.", 1, 32), 32)},
			keys.Key{Name: "v6", Value: keys.Default(keys.Whole("Of an IPv6 address.", 1, 128), 64)},
		)}),
	)
}

func amountSchema(about string, most int64) *jsonschema.Schema {
	last := func() []keys.Key {
		return []keys.Key{
			{Name: "default", Value: keys.Whole("Without the header, from anybody else, and where there is nothing else to go by.", 1, most)},
			{Name: "max", Value: keys.Whole("More counts as that.", 1, most)},
		}
	}
	return keys.Either(about+" A number, what a header of trusted_proxies says, or one for each part of the body.",
		keys.Whole("", 1, most),
		keys.Object("", 1, append([]keys.Key{{Name: "header", Value: keys.Text("That says it, a whole number, from trusted_proxies.", tokenPattern)}}, last()...)...),
		keys.Object("", 1, append([]keys.Key{{Name: "body", Value: keys.Size("Of the body for each unit.")}}, last()...)...),
	)
}
