/**
 * Every row of the catalogue through the sequence that it names, also those that nothing raises yet: a handler of the
 * test refuses with the code that stands in the path. And every default sequence on its own.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { FAULT, type FaultCode } from '../../src/errors/catalogue.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import { refusal } from '../../src/exchange/outcome.ts'
import { takeAnswer } from '../harness/answers.ts'
import { DEFAULT_FAULTS } from '../harness/default-sequences.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const WAIT_S = 60

const REFUSING: Handler = {
  name: 'refusing',
  request: exchange => {
    if (exchange.target.endsWith('/later')) exchange.retryAfterS = WAIT_S
    return refusal(Number(/\d+/.exec(exchange.target)?.[0] ?? 404) as FaultCode)
  },
}

const gateway = await startGateway([{ context: '/codes', port: 1 }], {}, null, [REFUSING])
after(() => gateway.stop())

async function ask(port: number, path: string): ReturnType<typeof takeAnswer> {
  const client = await connectPeer(port)
  client.send(`GET /codes/${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  const answer = await takeAnswer(client)
  client.destroy()
  return answer
}

for (const [code, row] of Object.entries(FAULT)) {
  test(`${code} by ${row.sequence}.xml`, async () => {
    const answer = await ask(gateway.port, code)
    const { description, status } = row
    const message = code === '400' ? 'Bad Request' : row.message
    assert.equal(answer.status, status)
    assert.deepEqual(JSON.parse(answer.body), {
      fault: { code: Number(code), type: 'Status report', message, description },
    })
    assert.notEqual(answer.reason, 'Error')
  })
}

test('_throttle_out_handler_ says when the next window begins, in the body and as Retry-After', async () => {
  const before = Date.now()
  const answer = await ask(gateway.port, '900800/later')
  assert.equal(answer.status, 429)
  assert.deepEqual(answer.fields.get('retry-after'), [String(WAIT_S)])
  const { fault } = JSON.parse(answer.body) as { fault: Record<string, string> }
  assert.match(fault.nextAccessTime!, /^\d{4}-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d\+0000 UTC$/)
  const at = Date.parse(`${fault.nextAccessTime}`.replaceAll('-', ' ').replace('+0000 UTC', ' UTC'))
  assert.ok(Math.abs(at - before - WAIT_S * 1000) < 5000, `${fault.nextAccessTime}`)
})

const WORDLESS = ['dispatchSeq', 'outDispatchSeq', '_cors_request_handler_']

for (const { name } of DEFAULT_FAULTS.programs.filter(program => !WORDLESS.includes(program.name))) {
  test(`${name}.xml words any fault`, async t => {
    const faults = { ...DEFAULT_FAULTS, aiSequence: name }
    const api = { context: '/codes', port: 1, unlike: { isAi: true } }
    const other = await startGateway([api], {}, null, [REFUSING], { faults })
    t.after(() => other.stop())
    const answer = await ask(other.port, '900805')
    assert.match(answer.body, /"code":"?900805"?,"type":"(?:Status report|Message blocked)","message":"/)
    assert.deepEqual(other.reports, [])
  })
}
