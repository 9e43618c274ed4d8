/** Answers longer than the memory in which heads are composed: whole for who asked, and nobody else's affair. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { takeAnswer } from '../harness/answers.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'

/** Longer than the composer's chunk, than the largest one there is, and as long as bodies get. */
for (const length of [100_000, 131_072, 300_000, 1_048_576]) {
  test(`an answer with a body of ${length} bytes is whole, and so are those beside and behind it`, async t => {
    const filler = 'f'.repeat(length / 2 - 4)
    const args = '<args><arg expression="$trp:X-In"/><arg expression="$ctx:f"/></args>'
    const payload = `<payloadFactory media-type="text"><format>$1$2éé$2</format>${args}</payloadFactory>`
    const main = `<property name="f" value="${filler}"/>${payload}<respond/>`
    const faults = await faultsWith({ main })
    const gateway = await startGateway([{ context: '/t', port: 1 }], {}, null, [], { faults })
    t.after(() => gateway.stop())
    const lent = arena.lentChunks
    const clients = await Promise.all(Array.from({ length: 8 }, () => connectPeer(gateway.port)))
    for (const [n, client] of clients.entries()) client.send(requestOf(n).repeat(3))
    for (const [n, client] of clients.entries()) {
      for (let i = 0; i < 3; i++) {
        const { body } = await takeAnswer(client)
        assert.ok(
          Buffer.from(body, 'latin1').toString() === `${n}...${filler}éé${filler}`,
          `${body.length} of ${length}`,
        )
      }
    }
    for (const client of clients) client.destroy()
    await eventually('the memory is given back', () => arena.lentChunks === lent)
    assert.deepEqual(gateway.reports, [])
  })
}

function requestOf(n: number): string {
  return `GET /none HTTP/1.1\r\nHost: a\r\nX-In: ${n}...\r\n\r\n`
}

test('who takes nothing of a long answer holds no more than one', async t => {
  const main = `<payloadFactory media-type="text"><format>${'f'.repeat(1_000_000)}</format></payloadFactory><respond/>`
  const faults = await faultsWith({ main })
  const gateway = await startGateway([{ context: '/t', port: 1 }], {}, null, [], { faults })
  t.after(() => gateway.stop())
  const client = await connectPeer(gateway.port)
  const lent = arena.lentChunks
  client.pause()
  client.send(requestOf(0).repeat(50))
  await eventually('an answer waits', () => arena.lentChunks > lent)
  assert.ok(arena.lentChunks - lent < 20, `${arena.lentChunks - lent} chunks`)
  client.destroy()
  await eventually('the memory is given back', () => arena.lentChunks === lent)
})
