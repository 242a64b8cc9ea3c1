package accesslog_test

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
)

func ExampleOpen() {
	log, err := accesslog.Open([]string{"testdata/samples/envoy_default.log"}, accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	for r, err := range log.Records() {
		if err != nil {
			fmt.Println(err)
			return
		}
		d, ok := r.Sample()
		fmt.Println(time.Unix(0, r.Arrival).UTC().Format(time.TimeOnly), r.Outcome, d, ok)
	}
	s := log.Summary()
	fmt.Printf("%d of %d lines used, %d with a service time\n%s: %s\n", s.Used, s.Lines, s.Samples, s.Files[0].Format, s.Files[0].Rule)
	// Output:
	// 07:47:04 cancelled 0s false
	// 08:08:00 served 25ms true
	// 08:08:00 rejected 0s false
	// 08:08:01 failed 0s false
	// 08:08:02 cancelled 0s false
	// 5 of 5 lines used, 1 with a service time
	// envoy: the stamp is the start of the request, arrival = stamp; service time = x-envoy-upstream-service-time, in milliseconds
}
