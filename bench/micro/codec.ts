/** Times the HTTP codec: parses heads by llhttp into offsets, classifies fields, rewrites heads into another buffer. */
import { FieldKinds, KIND } from '../../src/http1/field-kinds.ts'
import { arena } from '../../src/http1/llhttp.ts'
import { putFields, putResponseStart, strippedKinds } from '../../src/http1/rewrite.ts'
import { putText } from '../../src/http1/writer.ts'
import { REQUEST_SAMPLE, RESPONSE_SAMPLE, readHead } from './samples.ts'
import { time } from './timing.ts'

for (const sample of [REQUEST_SAMPLE, RESPONSE_SAMPLE]) {
  time(`reader: ${sample.name}, parsed and classified`, () => readHead(sample))
}

readHead(REQUEST_SAMPLE)
const kinds = new FieldKinds('activityid')
const { head } = REQUEST_SAMPLE.reader
time(`reader: ${head.count} fields, classified only`, () => kinds.classify(arena.bytes, head))

const out = arena.acquire(32_768)!.offset
const FORWARDING_KINDS = [KIND.X_FORWARDED_FOR, KIND.X_FORWARDED_PROTO, KIND.X_FORWARDED_HOST, KIND.FORWARDED]
const stripped = strippedKinds(KIND.HOST, ...FORWARDING_KINDS)
const OWN_FIELDS = 'Via: 1.1 sluice\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n'

readHead(REQUEST_SAMPLE)
const requestHead = REQUEST_SAMPLE.reader.head
time('rewrite: fields of a request head, 1 KB', () => {
  putFields(arena.bytes, out, requestHead, stripped)
})
time('rewrite: fields of the gateway', () => {
  putText(arena.bytes, out, OWN_FIELDS)
})

readHead(RESPONSE_SAMPLE)
const responseHead = RESPONSE_SAMPLE.reader.head
time('rewrite: a response head', () => {
  putResponseStart(arena.bytes, out, RESPONSE_SAMPLE.at, responseHead, stripped)
})
