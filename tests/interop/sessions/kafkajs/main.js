// Session of kafkajs: as python_clients.py. Arguments: as there, without the library.
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, source, target, group, name] = process.argv.slice(2)
const COMMITTED = ['a1', 'a2', 'a3']
const ABORTED = ['b1', 'b2', 'b3']
const COPIED = 3

const kafka = new Kafka({ clientId: 'session', brokers: [bootstrap], logLevel: logLevel.WARN })

const messages = (values) => ({
  topic: target,
  messages: values.map((value) => ({ value, partition: 0 })),
})

async function read(topic, groupId, count) {
  const consumer = kafka.consumer({ groupId, readUncommitted: false })
  const found = []
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer
      .run({
        autoCommit: false,
        eachMessage: async ({ message }) => {
          found.push(message.value.toString())
          if (found.length === count) resolve()
        },
      })
      .catch(reject)
  })
  await consumer.disconnect()
  return found
}

async function main() {
  const producer = kafka.producer({ transactionalId: name, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  const first = await producer.transaction()
  await first.send(messages(COMMITTED))
  await first.commit()
  const second = await producer.transaction()
  await second.send(messages(ABORTED))
  await second.abort()
  const values = await read(source, group, COPIED)
  const third = await producer.transaction()
  await third.send(messages(values))
  await third.sendOffsets({
    consumerGroupId: group,
    topics: [{ topic: source, partitions: [{ partition: 0, offset: String(COPIED) }] }],
  })
  await third.commit()
  await producer.disconnect()
  const found = await read(target, `${group}-reader`, COMMITTED.length + COPIED)
  found.forEach((value) => console.log(value))
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
