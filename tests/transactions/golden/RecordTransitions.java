// Records what Kafka's own TransactionMetadata and TransactionLog make of sequences of transitions.
//
//     javac -d CLASSES -cp 'KAFKA/libs/*' RecordTransitions.java
//     java -cp 'KAFKA/libs/*:CLASSES' RecordTransitions > transitions.json
//
// Each step calls what TransactionCoordinator calls for it, and prints the record of both versions.
// test_records_golden.py asks the same of our decisions and compares the bytes.

import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.transaction.TransactionLog;
import org.apache.kafka.coordinator.transaction.TransactionMetadata;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.server.common.TransactionVersion;

public class RecordTransitions {
    static final long START = 1_700_000_000_000L;
    static long now;
    static TransactionMetadata metadata;
    static List<String> steps;
    static List<String> scenarios = new ArrayList<>();

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    static void done(String step, TxnTransitMetadata to) {
        metadata.completeTransitionTo(to);
        steps.add(String.format(
            "{\"step\": %s, \"last_epoch\": %d, \"values\": [%s, \"%s\"]}",
            step, to.lastProducerEpoch(), level0(to),
            hex(TransactionLog.valueToBytes(to, TransactionVersion.TV_2))));
        now += 1000;
    }

    // Kafka cannot write a request of version 2 at level 0.
    static String level0(TxnTransitMetadata to) {
        return to.clientTransactionVersion().featureLevel() > 0 ? "null"
            : "\"" + hex(TransactionLog.valueToBytes(to, TransactionVersion.TV_0)) + "\"";
    }

    static void begin(String id, short epoch) {
        now = START;
        steps = new ArrayList<>();
        metadata = new TransactionMetadata(id, 1000, -1, -1, epoch, (short) -1, 60000,
            TransactionState.EMPTY, Set.of(), -1, now, TransactionVersion.TV_0);
    }

    static void end(String name) {
        scenarios.add(String.format("{\"name\": \"%s\", \"key\": \"%s\", \"steps\": [\n    %s]}",
            name, hex(TransactionLog.keyToBytes(metadata.transactionalId())), String.join(",\n    ", steps)));
    }

    static void init(int epoch) {
        Optional<Short> given = epoch < 0 ? Optional.empty() : Optional.of((short) epoch);
        done("[\"init\", " + epoch + "]", metadata.prepareIncrementProducerEpoch(60000, given, now));
    }

    static void rotate(int epoch, long next) {
        done("[\"init\", " + epoch + "]",
            metadata.prepareProducerIdRotation(next, 60000, now, epoch >= 0));
    }

    static void add(int version, String topic, int... partitions) {
        HashSet<TopicPartition> added = new HashSet<>();
        List<String> names = new ArrayList<>();
        for (int partition : partitions) {
            added.add(new TopicPartition(topic, partition));
            names.add(String.format("[\"%s\", %d]", topic, partition));
        }
        done("[\"add\", " + version + ", [" + String.join(", ", names) + "]]",
            metadata.prepareAddPartitions(added, now, TransactionVersion.fromFeatureLevel((short) version)));
    }

    static void endTxn(int version, boolean commit, long next) {
        boolean nothing = metadata.state() != TransactionState.ONGOING;
        done("[\"end\", " + version + ", " + commit + "]", metadata.prepareAbortOrCommit(
            commit ? TransactionState.PREPARE_COMMIT : TransactionState.PREPARE_ABORT,
            TransactionVersion.fromFeatureLevel((short) version), next, now, nothing));
        now -= 1000; // the markers take no time
        complete();
    }

    static void complete() {
        done("[\"complete\"]", metadata.prepareComplete(now));
    }

    static void abort(int level, long next) {
        if (level < 2) {
            TxnTransitMetadata fence = metadata.prepareFenceProducerEpoch();
            metadata.pendingState(Optional.empty());
            metadata.setProducerEpoch(fence.producerEpoch());
            metadata.setLastProducerEpoch((short) -1);
        }
        done("[\"abort\", " + level + "]", metadata.prepareAbortOrCommit(TransactionState.PREPARE_ABORT,
            TransactionVersion.fromFeatureLevel((short) (level < 2 ? 0 : level)), next, now, false));
        now -= 1000;
        complete();
    }

    public static void main(String[] args) {
        begin("orders-1", (short) -1);
        init(-1);
        add(2, "orders", 0);
        add(2, "orders", 1);
        endTxn(2, true, -1);
        add(2, "orders", 0);
        endTxn(2, false, -1);
        end("version 2");

        begin("\u00fcber", (short) -1);
        init(-1);
        add(0, "orders", 0);
        endTxn(0, true, -1);
        add(0, "payments", 3);
        endTxn(0, false, -1);
        init(-1);
        init(1);
        init(1);
        init(2);
        end("older requests, and the identity that a producer goes on with");

        begin("nothing-to-abort", (short) -1);
        init(-1);
        endTxn(2, false, -1);
        endTxn(2, false, -1);
        end("aborts of no transaction");

        begin("overflow", (short) 32765);
        init(-1);
        add(2, "orders", 0);
        endTxn(2, true, 2000);
        init(32766);
        add(2, "orders", 0);
        endTxn(2, true, -1);
        end("epochs of version 2 are used up");

        begin("rotation", (short) 32765);
        init(-1);
        add(0, "orders", 0);
        endTxn(0, true, -1);
        rotate(-1, 2000);
        end("epochs of older requests are used up");

        begin("rotation-of-known", (short) 32765);
        init(-1);
        rotate(32766, 2000);
        init(32766);
        end("epochs are used up, and the answer is lost");

        begin("fenced", (short) -1);
        init(-1);
        add(2, "orders", 0);
        abort(2, -1);
        init(0);
        add(2, "orders", 0);
        abort(2, -1);
        init(-1);
        end("aborts by the coordinator at level 2");

        begin("fenced-1", (short) -1);
        init(-1);
        add(0, "orders", 0);
        abort(1, -1);
        init(-1);
        end("aborts by the coordinator at level 1");

        begin("fenced-last", (short) 32765);
        init(-1);
        add(2, "orders", 0);
        abort(2, 2000);
        init(-1);
        end("an abort by the coordinator with the last epoch");

        begin("fenced-last-1", (short) 32765);
        init(-1);
        add(0, "orders", 0);
        abort(1, -1);
        rotate(-1, 2000);
        end("an abort by the coordinator with the last epoch at level 1");

        System.out.println("[\n" + String.join(",\n", scenarios) + "\n]");
    }
}
