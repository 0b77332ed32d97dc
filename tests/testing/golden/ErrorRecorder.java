// Answers requests with an error by Apache Kafka's own request classes: run by make.py.
// In: a line for each request, "<api key> <version> <error> <request's bytes in hex>".
// Out: the bytes of the response in hex; "none" where there is no answer; "! <why>" if it fails.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

public class ErrorRecorder {
    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String[] parts = line.split(" ", 4);
            ApiKeys apiKey = ApiKeys.forId(Integer.parseInt(parts[0]));
            short version = Short.parseShort(parts[1]);
            byte[] bytes = HexFormat.of().parseHex(parts[3]);
            try {
                AbstractRequest request = AbstractRequest
                    .parseRequest(apiKey, version, new ByteBufferAccessor(ByteBuffer.wrap(bytes)))
                    .request;
                AbstractResponse response =
                    request.getErrorResponse(0, Errors.valueOf(parts[2]).exception());
                if (response == null) {
                    System.out.println("none");
                    continue;
                }
                ByteBuffer written =
                    MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
                byte[] answer = new byte[written.remaining()];
                written.get(answer);
                System.out.println(HexFormat.of().formatHex(answer));
            } catch (Exception | Error failed) {
                System.out.println("! " + failed.toString().split("\n")[0]);
            }
        }
    }
}
