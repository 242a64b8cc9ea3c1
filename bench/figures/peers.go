package figures

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
)

// Peers are the figures of rivals that no module proxy serves. They were measured once, on
// another machine, and stand in tables of their own.
type Peers struct {
	Conditions string         `json:"conditions"`
	Cost       []PeerCost     `json:"cost"`
	Overload   []PeerOverload `json:"overload"`
}

// A PeerCost is what a request costs in process, in nanoseconds.
type PeerCost struct {
	Name     string  `json:"name"`
	Acquire  float64 `json:"acquire_ns"` // and release, on one processor
	Bytes    float64 `json:"bytes"`
	Allocs   float64 `json:"allocs"`
	Parallel float64 `json:"parallel_ns"` // on two
	Refusal  float64 `json:"refusal_ns"`  // 0: it has none at once
}

// A PeerOverload is what is left of the goodput.
type PeerOverload struct {
	Name   string    `json:"name"`
	Clock  string    `json:"clock"`  // virtual or real
	Ratios []float64 `json:"ratios"` // at peerLoads
	P50    float64   `json:"p50_ms"` // at 3x
	P99    float64   `json:"p99_ms"`
	Told   float64   `json:"told_p99_ms"`     // until a refused one knew
	Later  []float64 `json:"later,omitempty"` // at 1.5x and 3x, of the last half of 180 s: for limits that move slowly
}

// peerLoads are those of PeerOverload.Ratios.
var peerLoads = []float64{0.5, 1, 1.5, 3, 10}

//go:embed peers.json
var peersFile []byte

// ReadPeers reads a file of peers.
func ReadPeers(data []byte) (*Peers, error) {
	p := new(Peers)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("peers.json is no file of peers: %w", err)
	}
	if p.Conditions == "" || len(p.Cost) == 0 || len(p.Overload) == 0 {
		return nil, errors.New("peers.json: one of conditions, cost and overload is empty")
	}
	for _, o := range p.Overload {
		if len(o.Ratios) != len(peerLoads) {
			return nil, fmt.Errorf("peers.json: %s has %d ratios, want one for each of %v", o.Name, len(o.Ratios), peerLoads)
		}
	}
	return p, nil
}
