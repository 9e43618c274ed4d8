/** What rewriting costs: the fields that pass copied into another buffer, those that end at this hop left out. */
import { KIND } from '../../src/http1/field-kinds.ts'
import { arena } from '../../src/http1/llhttp.ts'
import { drops, putFields, putResponseStart } from '../../src/http1/rewrite.ts'
import { putText } from '../../src/http1/writer.ts'
import { REQUEST_SAMPLE, RESPONSE_SAMPLE, readHead } from './samples.ts'
import { time } from './stopwatch.ts'

const out = arena.lend(32_768)!.offset
const left = drops(KIND.HOST, KIND.X_FORWARDED_FOR, KIND.X_FORWARDED_PROTO, KIND.X_FORWARDED_HOST, KIND.FORWARDED)
const OWN_LINES = 'Via: 1.1 sluice\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n'

readHead(REQUEST_SAMPLE)
const requestHead = REQUEST_SAMPLE.reader.head
time('rewrite: fields of a request head, 1 KB', () => {
  putFields(arena.bytes, out, requestHead, left)
})
time('rewrite: own lines', () => {
  putText(arena.bytes, out, OWN_LINES)
})

readHead(RESPONSE_SAMPLE)
const responseHead = RESPONSE_SAMPLE.reader.head
time('rewrite: a response head', () => {
  putResponseStart(arena.bytes, out, RESPONSE_SAMPLE.at, responseHead, left)
})
