package goodputhttp

import (
	"fmt"
	"net/http"
	"net/netip"
)

// ByAddress returns a function for Server.Tenant or Server.User that names a client by
// the network of its address: the first v4 bits of an IPv4 address, the first v6 bits of
// an IPv6 one, in the notation 2001:db8::/64 (RFC 4291), whole addresses without the
// slash. 0 means the default, 32 and 64; 1 to 32 and 1 to 128 are allowed.
//
// A subscriber of IPv6 is given a /64 or more (RFC 6177) and takes a new address of it
// whenever it likes. Counted one by one those would be as many clients; in a /64 they
// are one. An IPv4 address in IPv6 clothes (::ffff:192.0.2.1) is one of IPv4.
//
// The address is that of http.Request.RemoteAddr, which a client cannot choose. Behind a
// proxy it is the proxy's, so that all clients are one: there Tenant is to read what the
// proxy, and only the proxy, writes. Who has no address, as on a Unix socket, is named
// "".
func ByAddress(v4, v6 int) func(*http.Request) string {
	if v4 < 0 || v4 > 32 || v6 < 0 || v6 > 128 {
		panic(fmt.Sprintf("goodputhttp: ByAddress(%d, %d) is out of range: 1 to 32 bits and 1 to 128, or 0 for 32 and 64", v4, v6))
	}
	v4, v6 = or(v4, 32), or(v6, 64)
	return func(r *http.Request) string {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return ""
		}
		addr := from.Addr().Unmap().WithZone("")
		bits := v6
		if addr.Is4() {
			bits = v4
		}
		if bits == addr.BitLen() {
			return addr.String()
		}
		return netip.PrefixFrom(addr, bits).Masked().String()
	}
}
