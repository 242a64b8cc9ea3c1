package goodputprom_test

import (
	"fmt"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputprom"
	"github.com/prometheus/client_golang/prometheus"
)

// The snippet of the README.
func Example_readme() {
	search := goodput.New(goodput.Config{Name: "search"})
	reports := goodput.New(goodput.Config{Name: "reports"})

	prometheus.MustRegister(goodputprom.New(search, reports)) // limiters

	families, err := prometheus.DefaultGatherer.Gather()
	fmt.Println(len(families) > 0, err)
	// Output: true <nil>
}
