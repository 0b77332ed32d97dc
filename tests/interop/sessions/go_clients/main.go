// Session of a Go library: as python_clients.py.
//
// Arguments: library (franz-go, sarama), then as there.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	committed = []string{"a1", "a2", "a3"}
	aborted   = []string{"b1", "b2", "b3"}
)

const copied = 3

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	args := os.Args
	session := map[string]func(bootstrap, source, target, group, name string) []string{
		"franz-go": franz, "sarama": shopify,
	}[args[1]]
	for _, value := range session(args[2], args[3], args[4], args[5], args[6]) {
		fmt.Println(value)
	}
}

func franz(bootstrap, source, target, group, name string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	logger := kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil))
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap), logger, kgo.TransactionalID(name), kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(source), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	must(err)
	write := func(values []string) {
		must(session.Begin())
		for _, value := range values {
			record := &kgo.Record{Topic: target, Partition: 0, Value: []byte(value)}
			must(session.Client().ProduceSync(ctx, record).FirstErr())
		}
	}
	end := func(commit kgo.TransactionEndTry) {
		did, err := session.End(ctx, commit)
		must(err)
		if did != bool(commit) {
			log.Fatalf("the end of the transaction: %v", did)
		}
	}
	var values []string
	for len(values) < copied {
		fetches := session.PollFetches(ctx)
		must(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	write(committed)
	end(kgo.TryCommit) // with the offsets of what was read
	write(aborted)
	end(kgo.TryAbort)
	write(values)
	end(kgo.TryCommit)
	commitEnd(ctx, session.Client(), source, group)
	session.Close()
	reader, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), logger, kgo.ConsumeTopics(target),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	must(err)
	defer reader.Close()
	var found []string
	for len(found) < len(committed)+copied {
		fetches := reader.PollFetches(ctx)
		must(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { found = append(found, string(record.Value)) })
	}
	return found
}

// commitEnd checks that the transaction's offsets are the group's, also for a stable fetch.
func commitEnd(ctx context.Context, client *kgo.Client, source, group string) {
	request := kmsg.NewPtrOffsetFetchRequest()
	request.RequireStable = true
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = group
	request.Groups = append(request.Groups, asked)
	for {
		response, err := request.RequestWith(ctx, client)
		must(err)
		for _, each := range response.Groups {
			for _, topic := range each.Topics {
				for _, partition := range topic.Partitions {
					if partition.Offset == copied {
						return
					}
				}
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func shopify(bootstrap, source, target, group, name string) []string {
	sarama.Logger = log.New(os.Stderr, "", 0)
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Producer.Idempotent = true
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = name
	config.Net.MaxOpenRequests = 1
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	must(err)
	write := func(values []string) {
		must(producer.BeginTxn())
		for _, value := range values {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{
				Topic: target, Partition: 0, Value: sarama.StringEncoder(value),
			})
			must(err)
		}
	}
	write(committed)
	must(producer.CommitTxn())
	write(aborted)
	must(producer.AbortTxn())
	members, err := sarama.NewConsumerGroup([]string{bootstrap}, group, config)
	must(err)
	copier := &copier{}
	ctx, cancel := context.WithCancel(context.Background())
	copier.done = cancel
	for ctx.Err() == nil {
		must(members.Consume(ctx, []string{source}, copier))
	}
	must(members.Close())
	write(copier.values)
	metadata := ""
	must(producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{
		source: {{Partition: 0, Offset: copied, Metadata: &metadata, LeaderEpoch: -1}},
	}, group))
	must(producer.CommitTxn())
	must(producer.Close())
	consumer, err := sarama.NewConsumer([]string{bootstrap}, config)
	must(err)
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(target, 0, sarama.OffsetOldest)
	must(err)
	var found []string
	for len(found) < len(committed)+copied {
		found = append(found, string((<-partition.Messages()).Value))
	}
	return found
}

type copier struct {
	values []string
	done   func()
}

func (*copier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (c *copier) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		c.values = append(c.values, string(message.Value))
		if len(c.values) == copied {
			c.done()
			return nil
		}
	}
	return nil
}
