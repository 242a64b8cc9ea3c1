package proxies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"github.com/goodput/goodput/bench/programs"
)

// service starts the service with so many slots and returns its address.
func (ps Programs) service(slots int) (addr string, stop func(), err error) {
	path, err := ps.path(Roles)
	if err != nil {
		return "", nil, err
	}
	addrs, err := programs.Free(1)
	if err != nil {
		return "", nil, err
	}
	p, err := start(exec.Command(path, "as", roleService, addrs[0], strconv.Itoa(slots)), addrs[0])
	if err != nil {
		return "", nil, err
	}
	return addrs[0], p.stop, nil
}

// ask asks the service at addr for its books.
func ask(addr string) (books, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var b books
	var body bytes.Buffer
	status, err := get(ctx, "http://"+addr+pathBooks, &body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the service answered %d for its books", status)
	}
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal(body.Bytes(), &b)
}

// get reads a page over a connection of its own.
func get(ctx context.Context, url string, body io.Writer) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(body, res.Body)
	return res.StatusCode, err
}
