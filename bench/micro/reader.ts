/** What reading costs: heads through llhttp into offsets, fields told apart. */
import { FieldKinds } from '../../src/http1/field-kinds.ts'
import { arena } from '../../src/http1/llhttp.ts'
import { REQUEST_SAMPLE, RESPONSE_SAMPLE, readHead } from './samples.ts'
import { time } from './stopwatch.ts'

for (const sample of [REQUEST_SAMPLE, RESPONSE_SAMPLE]) {
  time(`reader: ${sample.name}, parsed and classified`, () => readHead(sample))
}

readHead(REQUEST_SAMPLE)
const kinds = new FieldKinds('activityid')
const { head } = REQUEST_SAMPLE.reader
time(`reader: ${head.count} fields classified alone`, () => kinds.classify(arena.bytes, head))
