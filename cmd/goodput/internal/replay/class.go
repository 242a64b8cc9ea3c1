package replay

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
	"github.com/goodput/goodput/limit"
)

// ParseClass reads "search=/api/search*,cost=8,size=100".
func ParseClass(text string) (c accesslog.Class, err error) {
	parts := strings.Split(text, ",")
	name, path, ok := strings.Cut(parts[0], "=")
	if !ok || name == "" || path == "" {
		return c, fmt.Errorf("%q is not a class: a name and a path, such as search=/api/search*", text)
	}
	c.Name, c.Path = name, path
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		n, err := strconv.Atoi(value)
		switch {
		case key != "cost" && key != "size":
			return c, fmt.Errorf("%q: %q is unknown: cost=N or size=N", text, p)
		case err != nil || n < 1 || n > limit.Max:
			return c, fmt.Errorf("%q: %q is out of range: cost and size are 1 to %d", text, p, limit.Max)
		case key == "cost":
			c.Cost = n
		default:
			c.Size = n
		}
	}
	return c, nil
}
