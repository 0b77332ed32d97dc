// Independent member of franz-go: it reads, commits each batch, and reports what it did.
//
// The same program as member.py, in Go: the argument is the options as JSON (client.py), each line of
// stdout is a JSON object. SIGTERM ends it as a user would: it leaves.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	messagesPerPoll = 100
	pollFor         = 200 * time.Millisecond
	commitWithin    = 10 * time.Second // a daemon that restarts is back before
)

type options struct {
	Bootstrap           string  `json:"bootstrap"`
	Topic               string  `json:"topic"`
	Group               string  `json:"group"`
	SessionTimeoutMs    int     `json:"session_timeout_ms"`
	HeartbeatIntervalMs int     `json:"heartbeat_interval_ms"`
	Assignor            string  `json:"assignor"`
	InstanceID          *string `json:"instance_id"`
	GroupProtocol       string  `json:"group_protocol"`
	Pattern             string  `json:"pattern"`
}

var said sync.Mutex

func say(event string, facts map[string]any) {
	said.Lock()
	defer said.Unlock()
	line := map[string]any{"event": event, "at_ns": time.Now().UnixNano()}
	for name, fact := range facts {
		line[name] = fact
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(text, '\n'))
}

// A number, or "TOPIC-NUMBER" where a pattern may match many topics.
func (o options) name(topic string, partition int32) any {
	if o.Pattern != "" {
		return fmt.Sprintf("%s-%d", topic, partition)
	}
	return partition
}

func (o options) reportOf(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		names := []any{}
		for topic, partitions := range topics {
			for _, partition := range partitions {
				names = append(names, o.name(topic, partition))
			}
		}
		say(event, map[string]any{"partitions": names})
	}
}

func (o options) open() (*kgo.Client, error) {
	balancer := kgo.RangeBalancer()
	if o.Assignor == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	settings := []kgo.Opt{
		kgo.SeedBrokers(o.Bootstrap),
		kgo.ConsumerGroup(o.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.Balancers(balancer),
		kgo.OnPartitionsAssigned(o.reportOf("assigned")),
		kgo.OnPartitionsRevoked(o.reportOf("revoked")),
		kgo.OnPartitionsLost(o.reportOf("revoked")),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	if o.GroupProtocol == "consumer" {
		settings = append(settings, kgo.ServerSideBalancer())
	} else {
		settings = append(settings,
			kgo.SessionTimeout(time.Duration(o.SessionTimeoutMs)*time.Millisecond),
			kgo.HeartbeatInterval(time.Duration(o.HeartbeatIntervalMs)*time.Millisecond))
	}
	if o.InstanceID != nil {
		settings = append(settings, kgo.InstanceID(*o.InstanceID))
	}
	if o.Pattern != "" {
		settings = append(settings, kgo.ConsumeRegex(), kgo.ConsumeTopics(o.Pattern))
	} else {
		settings = append(settings, kgo.ConsumeTopics(o.Topic))
	}
	return kgo.NewClient(settings...)
}

func (o options) poll(client *kgo.Client) {
	polling, end := context.WithTimeout(context.Background(), pollFor)
	defer end()
	fetches := client.PollRecords(polling, messagesPerPoll)
	defer client.AllowRebalance()
	count := 0
	committed := map[string]int64{}
	fetches.EachPartition(func(read kgo.FetchTopicPartition) {
		if len(read.Records) == 0 {
			return
		}
		offsets := []int64{}
		for _, record := range read.Records {
			offsets = append(offsets, record.Offset)
		}
		count += len(offsets)
		committed[fmt.Sprint(o.name(read.Topic, read.Partition))] = offsets[len(offsets)-1] + 1
		say("read", map[string]any{"partition": o.name(read.Topic, read.Partition), "offsets": offsets})
	})
	if count == 0 {
		return
	}
	committing, end := context.WithTimeout(context.Background(), commitWithin)
	defer end()
	if err := client.CommitUncommittedOffsets(committing); err != nil {
		say("not committed", map[string]any{"why": err.Error()})
	} else {
		say("committed", map[string]any{"offsets": committed})
	}
}

func main() {
	var wanted options
	if err := json.Unmarshal([]byte(os.Args[1]), &wanted); err != nil {
		panic(err)
	}
	stopping := make(chan os.Signal, 1)
	signal.Notify(stopping, syscall.SIGTERM)
	client, err := wanted.open()
	if err != nil {
		panic(err)
	}
	say("subscribed", nil)
	for {
		select {
		case <-stopping:
			say("closing", nil) // it reads nothing from here on
			client.Close()
			say("closed", nil)
			return
		default:
			wanted.poll(client)
		}
	}
}
