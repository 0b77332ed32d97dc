// Hashes the metadata of topics with Apache Kafka's own class: run by make.py.
// In: a line for each group, a list of topics with name, id and the racks of each partition. Out:
// an object with the group, the hash of each topic, and that of the group.

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage.TopicMetadata;
import org.apache.kafka.coordinator.group.Utils;

public class HashRecorder {
    record Topic(JsonNode json) implements TopicMetadata {
        public String name() {
            return json.get("name").asText();
        }

        public Uuid id() {
            UUID id = UUID.fromString(json.get("id").asText());
            return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
        }

        public int partitionCount() {
            return json.get("racks").size();
        }

        public List<String> partitionRacks(int partition) {
            List<String> racks = new ArrayList<>();
            json.get("racks").get(partition).forEach(rack -> racks.add(rack.asText()));
            return racks;
        }
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode group = json.readTree(line);
            Map<String, Topic> topics = new HashMap<>();
            group.forEach(topic -> topics.put(topic.get("name").asText(), new Topic(topic)));
            CoordinatorMetadataImage image = (CoordinatorMetadataImage) Proxy.newProxyInstance(
                HashRecorder.class.getClassLoader(),
                new Class<?>[] {CoordinatorMetadataImage.class},
                (self, method, given) -> Optional.ofNullable(topics.get(given[0])));
            Map<String, Long> hashes = new LinkedHashMap<>();
            group.forEach(topic -> hashes.put(
                topic.get("name").asText(), Utils.computeTopicHash(topic.get("name").asText(), image)));
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("topics", group);
            answer.put("hashes", hashes);
            answer.put("group_hash", Utils.computeGroupHash(hashes));
            System.out.println(json.writeValueAsString(answer));
        }
    }
}
