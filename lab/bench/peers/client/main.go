// The client of `make bench-peers`: one program asks each signer for the same messages, keeps each signature, and
// verifies every one afterwards. Reads options, then commands, as lines of JSON; answers each with a line of JSON.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/herumi/bls-eth-go-binary/bls"
	"github.com/rs/zerolog"
	e2types "github.com/wealdtech/go-eth2-types/v2"
)

type options struct {
	// `wallet` writes a wallet for Dirk and ends.
	Server                      string
	Folder, Passphrase          string
	Secrets                     []string
	Port                        uint32
	URL, Token                  string
	Authority, Certificate, Key string
	PublicKeys                  []string
	Parallel                    int
}

type command struct {
	// `burst`, `distinct`, `batch`, `lone`, `block`, `randao`, `selection`, `registration` or `verify`.
	Do    string
	Epoch uint64
	// Requests under way at once.
	Parallel int
	// Keys with one head; keys of one request.
	Group, Batch int
	// Votes; with `block`, of the burst beside it.
	Keys int
	// With `block`: proposals, one after another while the burst is under way.
	Blocks int
}

type result struct {
	Requests, Failed, Signed int
	Seconds                  float64
	// Milliseconds of votes, or of blocks beside a burst.
	P50, P99, P999, Longest float64
	// The client's own, on the same cores.
	CPUSeconds float64
	// The first failure; of `verify`, what did not verify.
	Failure string
}

type server interface {
	vote(ctx context.Context, key int, v vote) ([]byte, error)
	votes(ctx context.Context, keys []int, v vote) ([][]byte, error)
	propose(ctx context.Context, key int, p proposal) ([]byte, error)
	sign(ctx context.Context, key int, m plain) ([]byte, error)
}

// A signature that was answered, to be verified.
type answer struct {
	key       int
	root      root
	signature []byte
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	zerolog.SetGlobalLevel(zerolog.ErrorLevel)
	if err := e2types.InitBLS(); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	var o options
	if err := readLine(lines, &o); err != nil {
		return err
	}
	ctx := context.Background()
	var asked server
	var err error
	switch o.Server {
	case "wallet":
		return writeWallet(ctx, o)
	case "dirk":
		asked, err = openDirk(ctx, o)
	case "strongroom":
		asked, err = openStrongroom(o)
	default:
		err = fmt.Errorf("no server %q", o.Server)
	}
	if err != nil {
		return err
	}
	client := &client{server: asked, publicKeys: o.PublicKeys}
	fmt.Println(`"ready"`)
	for {
		var c command
		if err := readLine(lines, &c); err != nil {
			return nil // the parent has what it wanted
		}
		made, err := client.do(ctx, c)
		if err != nil {
			return err
		}
		text, err := json.Marshal(made)
		if err != nil {
			return err
		}
		fmt.Println(string(text))
	}
}

func readLine(lines *bufio.Reader, into any) error {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

type client struct {
	server     server
	publicKeys []string
	mutex      sync.Mutex
	answers    []answer
	latencies  []float64
	failures   []error
}

func (c *client) do(ctx context.Context, asked command) (result, error) {
	if asked.Do == "verify" {
		return c.verify()
	}
	c.answers, c.latencies, c.failures = nil, nil, nil
	cpu, started := cpuSeconds(), time.Now()
	requests := 0
	switch asked.Do {
	case "burst", "distinct", "lone":
		requests = asked.Keys
		c.burst(ctx, asked, true)
	case "randao":
		requests = asked.Keys
		first := fuluEpoch + (asked.Epoch-fuluEpoch)*uint64(asked.Keys)
		c.plain(ctx, asked, func(key int) plain { return randaoOf(first + uint64(key)) })
	case "selection":
		requests = asked.Keys
		c.plain(ctx, asked, func(int) plain { return selectionOf(asked.Epoch * 32) })
	case "registration":
		requests = asked.Keys
		c.plain(ctx, asked, func(key int) plain { return registrationOf(c.publicKeys[key], asked.Epoch) })
	case "batch":
		requests = (asked.Keys + asked.Batch - 1) / asked.Batch
		c.batches(ctx, asked)
	case "block":
		requests = asked.Keys + asked.Blocks
		c.blocksBesideBurst(ctx, asked)
	default:
		return result{}, fmt.Errorf("no load %q", asked.Do)
	}
	made := result{
		Requests: requests, Failed: len(c.failures), Signed: len(c.answers),
		Seconds: time.Since(started).Seconds(), CPUSeconds: cpuSeconds() - cpu,
	}
	sort.Float64s(c.latencies)
	made.P50, made.P99, made.P999, made.Longest = c.at(0.5), c.at(0.99), c.at(0.999), c.at(1)
	if len(c.failures) > 0 {
		made.Failure = c.failures[0].Error()
	}
	return made, nil
}

func (c *client) at(share float64) float64 {
	if len(c.latencies) == 0 {
		return 0
	}
	return c.latencies[min(len(c.latencies)-1, int(float64(len(c.latencies))*share))]
}

func (c *client) burst(ctx context.Context, asked command, timed bool) {
	group := max(1, asked.Group)
	parallel(asked.Keys, asked.Parallel, func(key int) {
		v := voteOf(asked.Epoch, uint64(key/group))
		started := time.Now()
		signature, err := c.server.vote(ctx, key, v)
		c.note([]int{key}, v.signingRoot(), [][]byte{signature}, err, started, timed)
	})
}

func (c *client) plain(ctx context.Context, asked command, message func(key int) plain) {
	parallel(asked.Keys, asked.Parallel, func(key int) {
		m := message(key)
		started := time.Now()
		signature, err := c.server.sign(ctx, key, m)
		c.note([]int{key}, m.signingRoot(), [][]byte{signature}, err, started, true)
	})
}

func (c *client) batches(ctx context.Context, asked command) {
	count := (asked.Keys + asked.Batch - 1) / asked.Batch
	parallel(count, asked.Parallel, func(number int) {
		keys := make([]int, 0, asked.Batch)
		for key := number * asked.Batch; key < min(asked.Keys, (number+1)*asked.Batch); key++ {
			keys = append(keys, key)
		}
		v := voteOf(asked.Epoch, uint64(number))
		started := time.Now()
		signatures, err := c.server.votes(ctx, keys, v)
		c.note(keys, v.signingRoot(), signatures, err, started, true)
	})
}

func (c *client) blocksBesideBurst(ctx context.Context, asked command) {
	var burst sync.WaitGroup
	burst.Go(func() { c.burst(ctx, asked, false) })
	for number := range asked.Blocks {
		key := number % len(c.publicKeys)
		p := proposalOf(asked.Epoch*32 + uint64(number))
		started := time.Now()
		signature, err := c.server.propose(ctx, key, p)
		c.note([]int{key}, p.signingRoot(), [][]byte{signature}, err, started, true)
	}
	burst.Wait()
}

func (c *client) note(keys []int, signed root, signatures [][]byte, err error, started time.Time, timed bool) {
	latency := float64(time.Since(started).Microseconds()) / 1000
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err != nil {
		c.failures = append(c.failures, err)
		return
	}
	if timed {
		c.latencies = append(c.latencies, latency)
	}
	for i, key := range keys {
		c.answers = append(c.answers, answer{key: key, root: signed, signature: signatures[i]})
	}
}

// Each signature of the load before, one by one: the sum of a group could hide two wrong ones.
func (c *client) verify() (result, error) {
	var mutex sync.Mutex
	var wrong []error
	parallel(len(c.answers), runtime.NumCPU(), func(number int) {
		if err := c.check(c.answers[number]); err != nil {
			mutex.Lock()
			wrong = append(wrong, err)
			mutex.Unlock()
		}
	})
	made := result{Requests: len(c.answers), Failed: len(wrong), Signed: len(c.answers) - len(wrong)}
	if len(wrong) > 0 {
		made.Failure = wrong[0].Error()
	}
	return made, nil
}

func (c *client) check(a answer) error {
	var public bls.PublicKey
	var signature bls.Sign
	key := c.publicKeys[a.key]
	if err := public.DeserializeHexStr(key[2:]); err != nil {
		return err
	}
	if err := signature.Deserialize(a.signature); err != nil {
		return err
	}
	// A copy: cgo takes no pointer into what holds pointers.
	if !signature.VerifyByte(&public, bytes.Clone(a.root[:])) {
		return errors.New("a signature of " + key + " does not verify")
	}
	return nil
}

func parallel(count int, workers int, work func(number int)) {
	numbers := make(chan int)
	var all sync.WaitGroup
	for range min(count, workers) {
		all.Go(func() {
			for number := range numbers {
				work(number)
			}
		})
	}
	for number := range count {
		numbers <- number
	}
	close(numbers)
	all.Wait()
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
