package soak

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Classes of the policies. classExtra is there in one of them alone.
const (
	classLasting = "lasting"
	classAuto    = "auto"
	classPlain   = "plain"
	classExtra   = "extra"
)

// A variant is what one policy has that the others have otherwise.
type variant struct {
	plain   int    // limit of the class plain
	streams int    // limit of the class lasting
	weight  int    // of the tenant t1
	aim     string // objective of the classes that queue
	extra   bool
}

// variants are the policies that are taken turns. The servers' slots are 20 for plain: 22 let
// two wait there.
var variants = []variant{
	{20, 100, 3, "1s", false},
	{22, 80, 1, "900ms", false},
	{20, 120, 2, "1s", true},
}

// brokenPolicies are what must change nothing: each ends a good policy.
var brokenPolicies = []string{
	"objectiv: 1s\n",           // no such key
	"  - {name: [unclosed\n",   // no YAML
	"version: 2\n",             // twice, and of another format
	"\xff\xfe\x00not a text\n", // no text
}

// policy returns the file for servers at addrs.
func (v variant) policy(listen string, addrs []string) string {
	quoted := `"http://` + strings.Join(addrs, `", "http://`) + `"`
	upstream := fmt.Sprintf("{servers: [%s], health: {path: %s, interval: 1s, timeout: 500ms}, slow_start: %v}", quoted, pathHealthy, slowStart)
	extra := ""
	if v.extra {
		extra = fmt.Sprintf("  - {name: %s, match: {path: %s}, upstream: plain, limit: 4, objective: %s}\n", classExtra, pathExtra, v.aim)
	}
	return fmt.Sprintf(`version: 1
listen: {address: %q, header_timeout: 2s}
trusted_proxies: [127.0.0.1/32]
upstreams:
  plain: %s
  auto: %s
defaults:
  tenant: {header: X-Tenant}
  priority: {header: X-Priority}
  tenants: {rows: [{id: t1, weight: %d}], buckets: 16}
  deadline_cap: %v
  max_body: 1MiB
  slow_client: %v
classes:
  - {name: %s, match: {path: /lasting}, upstream: plain, mode: stream, limit: %d, idle: 20s, total: 1m}
%s  - {name: %s, match: {path: %s}, upstream: auto, limit: auto, objective: %s}
  - {name: %s, upstream: plain, limit: %d, objective: %s}
`, listen, upstream, upstream, v.weight, deadlineCap, slowClient,
		classLasting, v.streams, extra, classAuto, pathAuto, v.aim, classPlain, v.plain, v.aim)
}

// put makes text the policy file at once, so that no half of one is ever read, and returns
// its SHA-256.
func put(file, text string) (sum string, err error) {
	next := filepath.Join(filepath.Dir(file), "next.yaml")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return "", err
	}
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:]), os.Rename(next, file)
}
