/** Delays, ends of responses, and the report as a page. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DelaysError, parseDelays } from '../../src/tune/delays.ts'
import { htmlReport } from '../../src/tune/html-report.ts'
import { diffText, proposalsOf } from '../../src/tune/proposals.ts'
import { ResponseEnd } from '../../src/tune/response-end.ts'
import { tune } from '../../src/tune/search.ts'
import { SimulatedSystem } from './simulated-system.ts'

test('recorded delays are sorted; comments are left out', () => {
  assert.deepEqual(parseDelays('30 10\n20, 10 # late\n'), [10, 10, 20, 30])
})

test('quantiles become delays that have these quantiles again', () => {
  const delays = parseDelays('p0 0\np50 10\np90 50\np100 1000\n')
  const at = (share: number) => Math.round(delays[Math.round(share * (delays.length - 1))]! * 1000) / 1000
  assert.deepEqual([at(0), at(0.25), at(0.5), at(0.7), at(0.9), at(1)], [0, 5, 10, 30, 50, 1000])
  assert.deepEqual(new Set(parseDelays('p50 7')), new Set([7]))
})

for (const text of [
  '',
  '# nothing',
  '-1',
  'x',
  '1e9',
  '0x10',
  '12ms',
  'Infinity',
  '1 p50 3',
  'p50',
  'p101 3',
  'p50 3 p40 4',
  'p50 5 p90 4',
  'p50 x',
]) {
  test(`delays are refused: ${JSON.stringify(text)}`, () => {
    assert.throws(() => parseDelays(text), DelaysError)
  })
}

const SECTION = 'transport.passthru_http'

test('a file of another kind is refused with its first word, in few and harmless characters', () => {
  for (const text of [`${'x'.repeat(9999)}`, '\u001b]0;x\u0007\u009b1m', '\ufffd\u0000\u202e']) {
    assert.throws(
      () => parseDelays(text),
      ({ message }: Error) => message.length < 100 && /^"[\w?;[\]…]+" is no delay/.test(message),
    )
  }
})

/** Responses that end with their last byte, whatever the pieces. */
const RESPONSES = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx',
]
for (const text of RESPONSES) {
  test(`the end of ${JSON.stringify(text.slice(0, 60))} is found for every cut`, () => {
    const bytes = Buffer.from(text, 'latin1')
    const end = new ResponseEnd()
    for (let cut = 0; cut < bytes.length; cut++) {
      end.begin()
      if (cut > 0) assert.equal(end.read(bytes.subarray(0, cut)), false, `cut at ${cut}`)
      assert.equal(end.read(bytes.subarray(cut)), true, `cut at ${cut}`)
    }
    assert.equal(end.status, Number(/.*HTTP\/1\.1 (\d+)/s.exec(text)![1]))
  })
}

test('the report is one page without scripts or addresses, and escapes what it shows', async () => {
  const key = 'transport.passthru_http.http.max.connection.per.host.port'
  const system = new SimulatedSystem(({ [key]: most = 1 }, clients) => 50 * Math.min(most, clients))
  const knob = { key, others: [], unit: 'connections', values: [1, 2, 4, 8, 16], current: 2 }
  const options = { seed: 1, clients: 16, repeats: 3, p99Ms: 50, progress: () => {} }
  const result = await tune(system, [knob], options)
  const proposals = proposalsOf(result, () => SECTION)
  assert.match(
    diffText(proposals),
    /^ \[transport\.passthru_http\]\n-"http\.max.*" = 2\n\+"http\.max.*" = 16 {2}# throughput x/,
  )
  const page = htmlReport(result, proposals, { target: '/<script>alert(1)</script>', processors: 2 })
  assert.doesNotMatch(page, /<script|https?:|url\(|NaN|undefined|Infinity/)
  assert.equal(page.match(/<svg /g)?.length, 3)
  assert.match(page, /prefers-color-scheme: dark/)
})
