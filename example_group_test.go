package goodput_test

import (
	"context"
	"fmt"

	"github.com/goodput/goodput"
)

// Two classes before one database of 60 connections. Two thirds of them belong to search;
// reports may use what search leaves idle, but for five that search has at once when it
// comes.
func ExampleNewGroup() {
	database := goodput.NewGroup(goodput.GroupConfig{
		Name:  "database",
		Units: 60,
		Members: []goodput.Member{
			{Config: goodput.Config{Name: "search"}, Weight: 2, Min: 5},
			{Config: goodput.Config{Name: "reports"}},
		},
	})
	search, reports := database.Limiter("search"), database.Limiter("reports")

	err := reports.Do(context.Background(), func(context.Context) error {
		return search.Do(context.Background(), func(context.Context) error {
			fmt.Print(database.Explain())
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// database: 2 of 60 units in use, 2 wanted
	//   search: share 40 (weight 2 of 3 x 60 units, 5 to 60), may use 40, runs 1, wants 1
	//   reports: share 20 (weight 1 of 3 x 60 units, 0 to 60), may use 20, runs 1, wants 1
	// <nil>
}
