// Assigns with Apache Kafka's own assignors: run by kafka_assignors.py, with Kafka's jars as class path.
// In: a line of JSON for each input. Out: a line of JSON: the target assignment, or why there is
// none; and, for an input that is to be assigned several times, how long each took in nanoseconds.
// Maps are filled as TargetAssignmentBuilder and Assignment.fromRecord fill them.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

public class Assigner {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            System.out.flush();
        }
    }

    static ObjectNode answer(JsonNode given) {
        ConsumerGroupPartitionAssignor assignor =
            given.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        List<Uuid> topicIds = new ArrayList<>();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (JsonNode topic : given.get("topics")) {
            Uuid topicId = Uuid.fromString(topic.get(0).asText());
            topicIds.add(topicId);
            if (!topic.get(1).isNull()) counts.put(topicId, topic.get(1).asInt());
        }
        GroupSpecImpl group = group(given, topicIds);
        SubscribedTopicDescriber describer = describer(given, topicIds, counts);
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode nanos = answer.putArray("nanos");
        GroupAssignment assigned = null;
        for (int i = 0; i < given.get("times").asInt(); i++) {
            long start = System.nanoTime();
            try {
                assigned = assignor.assign(group, describer);
            } catch (PartitionAssignorException refused) {
                return answer.put("refused", refused.getMessage());
            }
            nanos.add(System.nanoTime() - start);
        }
        Map<Uuid, Integer> places = new HashMap<>();
        for (Uuid topicId : topicIds) places.put(topicId, places.size());
        ObjectNode members = answer.putObject("members");
        assigned.members().forEach((memberId, member) -> {
            ObjectNode topics = members.putObject(memberId);
            member.partitions().forEach((topicId, partitions) -> {
                ArrayNode held = topics.putArray(places.get(topicId).toString());
                partitions.stream().sorted().forEach(held::add);
            });
        });
        return answer;
    }

    static GroupSpecImpl group(JsonNode given, List<Uuid> topicIds) {
        var timeline = new TimelineHashMap<String, MemberSubscriptionAndAssignmentImpl>(
            new SnapshotRegistry(new LogContext()), 0);
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (JsonNode member : given.get("members")) {
            Set<Uuid> subscribed = new HashSet<>();
            for (JsonNode place : given.get("subscriptions").get(member.get(3).asInt()))
                subscribed.add(topicIds.get(place.asInt()));
            String memberId = member.get(0).asText();
            var value = new ConsumerGroupTargetAssignmentMemberValue();
            for (JsonNode held : member.get(4)) {
                List<Integer> partitions = new ArrayList<>();
                Uuid topicId = topicIds.get(held.get(0).asInt());
                for (JsonNode partition : held.get(1)) {
                    partitions.add(partition.asInt());
                    inverted.computeIfAbsent(topicId, __ -> new HashMap<>())
                        .put(partition.asInt(), memberId);
                }
                value.topicPartitions().add(
                    new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                        .setTopicId(topicId)
                        .setPartitions(partitions));
            }
            timeline.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(member.get(1).textValue()),
                Optional.ofNullable(member.get(2).textValue()),
                subscribed,
                Assignment.fromRecord(value)));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        timeline.forEach(members::put);
        return new GroupSpecImpl(
            Collections.unmodifiableMap(members),
            given.get("homogeneous").asBoolean()
                ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
            inverted);
    }

    static SubscribedTopicDescriber describer(
        JsonNode given, List<Uuid> topicIds, Map<Uuid, Integer> counts
    ) {
        Map<Uuid, List<Set<String>>> racks = new HashMap<>();
        for (int i = 0; i < topicIds.size(); i++) {
            List<Set<String>> ofTopic = new ArrayList<>();
            for (JsonNode partition : given.get("topics").get(i).get(2)) {
                Set<String> ofPartition = new HashSet<>();
                partition.forEach(rack -> ofPartition.add(rack.asText()));
                ofTopic.add(ofPartition);
            }
            racks.put(topicIds.get(i), ofTopic);
        }
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                List<Set<String>> ofTopic = racks.get(topicId);
                return partition < ofTopic.size() ? ofTopic.get(partition) : Set.of();
            }
        };
    }
}
