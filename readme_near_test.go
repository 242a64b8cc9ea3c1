package goodput_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/fleet"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/pool"
	"github.com/goodput/goodput/retry"
)

// The snippets of the README about what is near the resource.

func Example_readmeTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "told how long we wait:", r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms") != "")
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)

	client := &http.Client{Transport: &goodputhttp.Transport{
		Dependency: goodputhttp.ByHost(func(host string) *goodputhttp.Dependency {
			return &goodputhttp.Dependency{
				Limiter:  goodput.New(goodput.Config{Name: host, Limit: limit.Fixed(20)}),
				Retry:    &retry.Policy{},   // 3 attempts, one retry per ten calls, the server's Retry-After
				Throttle: &retry.Throttle{}, // a server that refuses most calls is sent fewer
			}
		}, goodputhttp.DefaultMaxHosts).Dependency,
	}}
	res, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close() //nolint:errcheck // nothing to do about it
	body, _ := io.ReadAll(res.Body)
	fmt.Print(string(body))
	// Output: told how long we wait: true
}

func Example_readmeSQL() {
	ctx := context.Background()
	sqlDB := sql.OpenDB(nothing{})

	lim := goodput.New(goodput.Config{Name: "database", Limit: limit.Fixed(20), Objective: 400 * time.Millisecond})
	db, err := goodputsql.New(sqlDB, lim)
	err = db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "update stock set n = n - 1 where id = $1", 7)
		return err
	})

	fmt.Println(err)
	// Output: no database here
}

// nothing is a database that is not there.
type nothing struct{}

func (nothing) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("no database here")
}
func (nothing) Driver() driver.Driver { return nil }

func Example_readmePool() {
	ctx := context.Background()
	scale := func(context.Context) (string, error) { return "a thumbnail", nil }

	p := pool.New(goodput.New(goodput.Config{
		Limit:     limit.Fixed(1), // the pool keeps it at GOMAXPROCS
		Objective: 2 * time.Second,
	}), pool.GOMAXPROCS)
	thumbnail, err := pool.Do(ctx, p, goodput.Work{}, scale)

	fmt.Println(thumbnail, err)
	// Output: a thumbnail <nil>
}

func Example_readmeGather() {
	shards := []string{"a", "b", "c"}
	search := func(_ context.Context, shard string) (string, error) {
		if shard == "b" {
			return "", errors.New("disk full")
		}
		return "hits of " + shard, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	got, err := goodput.Gather(ctx, goodput.Gathering[string]{Min: 2, Linger: 20 * time.Millisecond}, len(shards),
		func(ctx context.Context, i int) (string, error) { return search(ctx, shards[i]) })
	for i, hits := range got.All() {
		fmt.Println(i, hits)
	}
	for _, m := range got.Missing {
		fmt.Println("without", shards[m.Index], "because:", m.Err)
	}

	fmt.Println(err)
	// Output:
	// 0 hits of a
	// 2 hits of c
	// without b because: disk full
	// <nil>
}

func Example_readmeFleet() {
	split := fleet.Split{Budget: 200, Reserve: 10, Surge: 2} // connections; for others; a rolling update
	fmt.Println(split.Share(fleet.Place{Count: 8, Nth: 3}))  // 19: of the third of eight
	// Output: 19
}

func Example_readmeAllowance() {
	lim := goodput.New(goodput.Config{
		Limit:     limit.Fixed(8),                      // at once
		Allowance: goodput.Quota{Rate: 100, Burst: 20}, // per second
	})
	fmt.Println(lim.Stats().Limit)
	// Output: 8
}

func Example_readmeRefuse() {
	ctx, order := context.Background(), "order"
	charge := func(context.Context, string) error { return errors.New("card declined") }
	handler := func(w http.ResponseWriter, r *http.Request) {
		if err := charge(ctx, order); err != nil {
			if !goodputhttp.Refuse(w, r, err) {
				http.Error(w, "charging failed", http.StatusBadGateway)
			}
			return
		}
	}
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodPost, "/order", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 502 charging failed
}
