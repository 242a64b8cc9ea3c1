package scenario

import (
	"strings"
	"testing"
)

// Half of a criterion is not understood, wherever it ends.
func TestHalfACriterion(t *testing.T) {
	const whole = "goodput.in_time between 565 and 600"
	words := strings.Fields(whole)
	for n := 1; n < len(words); n++ {
		half := strings.Join(words[:n], " ")
		_, err := Load("test.yaml", []byte("version: 1\nname: x\nlength: 1s\npolicy: {limit: 6}\nload: 1x\nservice: 50ms fixed\nexpect: ["+half+"]\n"))
		if err == nil || !strings.Contains(err.Error(), "is not understood") {
			t.Errorf("%q: %v", half, err)
		}
	}
}
