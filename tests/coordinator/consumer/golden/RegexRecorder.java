// Compiles and matches regular expressions with RE2J, as Apache Kafka does: run by make.py.
// In: a line with the list of names, then one for each expression, all JSON. Out: for each
// expression an object with the names that match it, or with why it is refused.

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

public class RegexRecorder {
    public static void main(String[] args) throws Exception {
        ObjectMapper json =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String[] names = json.readValue(in.readLine(), String[].class);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = new LinkedHashMap<>();
            String expression = json.readValue(line, String.class);
            answer.put("pattern", expression);
            try {
                Pattern pattern = Pattern.compile(expression);
                List<String> matched = new ArrayList<>();
                for (String name : names) {
                    if (pattern.matcher(name).matches()) matched.add(name);
                }
                answer.put("topics", matched);
            } catch (PatternSyntaxException refused) {
                answer.put("refused", refused.getDescription());
            }
            System.out.println(json.writeValueAsString(answer));
        }
    }
}
