package strictyaml

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Unknown returns how a sentence ends about a word that is not known: ", did you
// mean x?", the known word that is nearest, or ": a, b or c", all of them.
func Unknown(word string, known []string) string {
	if best := Near(word, known); best != "" {
		return fmt.Sprintf(", did you mean %s?", best)
	}
	return ": " + Either(known)
}

// Near returns the known word that word is most likely meant for, or "".
func Near(word string, known []string) string {
	best, least := "", max(len(word)/3, 1)+1 // a third of the letters may be wrong
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		best = sharing(word, known)
	}
	return best
}

// sharing returns the known word that has all the parts of word: max_bytes is in
// max_queue_bytes.
func sharing(word string, known []string) string {
	parts := strings.Split(word, "_")
	for _, k := range known {
		has := strings.Split(k, "_")
		if len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(has, p) }) {
			return k
		}
	}
	return ""
}

// maxWord bounds the square that distance computes. A longer word is nobody's typing
// error.
const maxWord = 64

// distance is the number of letters to insert, delete, replace, or swap with
// their neighbour (Damerau, "A technique for computer detection and correction of
// spelling errors", CACM 7(3), 1964; the restricted form).
func distance(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return math.MaxInt
	}
	before, last, row := []int(nil), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
