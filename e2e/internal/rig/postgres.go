//go:build linux

package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// DatabaseConnections is how many connections the database allows the service:
// one more is refused by PostgreSQL itself, so a limit that leaks shows as an
// error of the service even if no sample sees it.
const DatabaseConnections = 20

const (
	serviceRole = "service"
	superuser   = "postgres"
)

// A Database is a PostgreSQL cluster of its own on a unix socket.
type Database struct {
	proc *Process
	dir  string
}

// StartDatabase makes a cluster and starts it. Durability is off: nothing in it
// is worth a disk.
func StartDatabase() (*Database, error) {
	initdb, err := Find("initdb")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "goodput-pg-") // short: a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	db := &Database{dir: dir}
	if err := db.start(initdb); err != nil {
		db.Stop()
		return nil, err
	}
	return db, nil
}

func (db *Database) start(initdb string) error {
	attr, err := db.unprivileged()
	if err != nil {
		return err
	}
	data := filepath.Join(db.dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	cmd.SysProcAttr, cmd.Dir, cmd.Env = attr(), db.dir, environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	server := exec.Command(filepath.Join(filepath.Dir(resolve(initdb)), "postgres"), "-D", data,
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+db.dir,
		// The service's, our own, and the 3 that PostgreSQL reserves.
		"-c", fmt.Sprintf("max_connections=%d", DatabaseConnections+10),
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=16MB", "-c", "autovacuum=off")
	server.SysProcAttr, server.Dir = attr(), db.dir
	if db.proc, err = start("postgres", server, syscall.SIGINT); err != nil {
		return err
	}
	err = db.proc.line(30*time.Second, func(l string) bool {
		return strings.Contains(l, "database system is ready to accept connections")
	})
	if err != nil {
		return err
	}
	return db.exec(fmt.Sprintf("create role %s login connection limit %d", serviceRole, DatabaseConnections))
}

// DSN is for who connects as the service does, within DatabaseConnections.
func (db *Database) DSN() string { return db.dsn(serviceRole) }

// Disconnect ends the connections of the service, and makes sure that they have ended.
func (db *Database) Disconnect(t testing.TB) {
	t.Helper()
	if err := db.disconnect(); err != nil {
		t.Fatal(err)
	}
}

// Backends returns the processes of the connections of the service.
func (db *Database) Backends(t testing.TB) []int {
	t.Helper()
	return db.pids(t, "")
}

// InTransaction returns how many connections of the service wait in a transaction.
func (db *Database) InTransaction(t testing.TB) int {
	t.Helper()
	return len(db.pids(t, " and state like 'idle in transaction%'"))
}

func (db *Database) pids(t testing.TB, which string) []int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.dsn(superuser))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)                                                                                //nolint:errcheck // the server notices
	rows, _ := conn.Query(ctx, "select pid from pg_stat_activity where usename = $1"+which, serviceRole) //nolint:errcheck // CollectRows returns it
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// disconnect ends the connections of the service: PostgreSQL does not notice
// that a killed client has left before its statement ends.
func (db *Database) disconnect() error {
	return db.exec("select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = '" + serviceRole + "'")
}

func (db *Database) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.dsn(superuser))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the server notices
	_, err = conn.Exec(ctx, statement)
	return err
}

// unprivileged returns the attributes of processes that are not root: PostgreSQL
// refuses to be.
func (db *Database) unprivileged() (func() *syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return func() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(db.dir, uid, gid); err != nil {
		return nil, err
	}
	return func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}, nil
}

// resolve follows links: the server is beside the real initdb.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func (db *Database) dsn(role string) string {
	return fmt.Sprintf("host=%s user=%s database=postgres sslmode=disable", db.dir, role)
}

// Stop ends the cluster and removes it.
func (db *Database) Stop() {
	if db.proc != nil {
		db.disconnect() //nolint:errcheck // it would wait for its clients; they are gone
		db.proc.terminate(10 * time.Second)
	}
	os.RemoveAll(db.dir) //nolint:errcheck // a temporary directory
}

// A Sample is what the database sees of the service.
type Sample struct {
	Connections int
	Active      int // executing a statement
	Sleeping    int // in pg_sleep
}

// Watch samples the database every 10 ms, a fifth of a query, until ctx ends,
// and returns the most of each that it saw and how often it looked.
func (db *Database) Watch(ctx context.Context) (most Sample, samples int, err error) {
	connect, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(connect, db.dsn(superuser))
	if err != nil {
		return most, 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the server notices
	const query = `select count(*), count(*) filter (where state = 'active'), count(*) filter (where wait_event = 'PgSleep')
		from pg_stat_activity where usename = $1`
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return most, samples, nil
		case <-tick.C:
		}
		var s Sample
		if err := conn.QueryRow(context.WithoutCancel(ctx), query, serviceRole).Scan(&s.Connections, &s.Active, &s.Sleeping); err != nil {
			return most, samples, err
		}
		samples++
		most.Connections = max(most.Connections, s.Connections)
		most.Active = max(most.Active, s.Active)
		most.Sleeping = max(most.Sleeping, s.Sleeping)
	}
}
