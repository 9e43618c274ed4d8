/** Connections to a backend that cannot be had: it does not accept, or there are as many as there may be. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { deafListener } from '../harness/deaf-listener.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, ScriptedBackend } from '../harness/peers.ts'

const TIMEOUT_MS = 200
const GET = 'GET /t/it?a=b HTTP/1.1\r\nHost: a\r\n\r\n'

const backend = await ScriptedBackend.listen()
after(() => backend.close())

test('a backend that does not even accept', async t => {
  const deaf = await deafListener()
  const gateway = await startGateway([{ context: '/deaf', port: deaf.port }], { 'http.connection.timeout': TIMEOUT_MS })
  t.after(() => {
    gateway.stop()
    deaf.close()
  })

  await t.test('connecting times out: 504 with 101508', async () => {
    const client = await connectPeer(gateway.port)
    client.send('GET /deaf/ HTTP/1.1\r\nHost: a\r\n\r\n')
    assertFault(await takeAnswer(client), 504, 101508, 0, false)
    const { fields } = failureLine(gateway, 0)
    assert.equal(fields.ERROR_CODE, 101508)
    assert.equal(fields.INTERNAL_STATE, 0)
    assert.equal(gateway.metrics().counts.timeoutConnect, 1)
    client.destroy()
  })

  await t.test('the client leaves meanwhile: 101507, in the debug log only', async () => {
    const from = gateway.reports.length
    const client = await connectPeer(gateway.port)
    client.send('GET /deaf/ HTTP/1.1\r\nHost: a\r\n\r\n')
    await eventually('the attempt', () => gateway.metrics().counts.targetsOpen === 1)
    client.reset()
    await eventually('its end', () => gateway.metrics().counts.targetsOpen === 0)
    const { level, fields } = failureLine(gateway, from)
    assert.equal(level, 'debug')
    assert.equal(fields.ERROR_CODE, 101507)
    assert.equal(countedFailures(gateway, 101507, 0), 1)
  })
})

test('a full pool: 503 with 101504 at once, and room again when a connection has gone', async t => {
  const gateway = await startGateway([{ context: '/t', port: backend.port }], {
    'http.max.connection.per.host.port': 1,
  })
  t.after(() => gateway.stop())
  backend.skip()
  const first = await connectPeer(gateway.port)
  first.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  const second = await connectPeer(gateway.port)
  second.send(GET)
  assertFault(await takeAnswer(second), 503, 101504, 0, false)
  const { level, fields } = failureLine(gateway, 0)
  assert.equal(level, 'warn')
  assert.equal(fields.ERROR_CODE, 101504)
  assert.equal(countedFailures(gateway, 101504, 0), 1)
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx')
  assert.equal((await takeAnswer(first)).body, 'x')
  second.send(GET)
  const next = await backend.next()
  await next.untilText('\r\n\r\n')
  next.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny')
  assert.equal((await takeAnswer(second)).body, 'y')
  assert.equal(gateway.metrics().counts.targetsOpen, 1)
  first.destroy()
  second.destroy()
})
