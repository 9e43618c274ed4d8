/** Sequences that decide about WebSocket upgrades: a missing or broken one is never ignored. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'
import { takeResponse } from '../harness/responses.ts'
import { begin, dial, home, leave, sluice, start } from '../harness/operator.ts'
import type { Home, RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

after(leave)

const FOLDER = 'synapse-configs/default/sequences'
const NAMES = ['outflow.dispatch.sequence', 'outflow.dispatch.fault.sequence'] as const

function file(name: string, content: string): string {
  return `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">\n${content}\n</sequence>`
}

async function asked(gateway: RunningGateway): Promise<number> {
  const client = await dial(gateway)
  client.send('GET /t HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const { status } = await takeResponse(client)
  client.destroy()
  return status
}

/** The result of `check`, in this process. */
async function checked(at: Home): Promise<{ code: number; out: string }> {
  const said = new Transcript()
  const code = await check(argumentsFor(at.path), said)
  return { code, out: said.text }
}

for (const section of ['transport.ws', 'transport.wss']) {
  for (const name of NAMES) {
    test(`[${section}] ${name}: a sequence that does not exist is an error with its line`, async () => {
      const at = home()
      const key = `sender.parameters.ws.${name}`
      put(at, 'deployment.toml', `[${section}]\n${key} = "mine"\n`)
      const { code, out } = await checked(at)
      assert.equal(code, 78)
      assert.ok(out.includes(`deployment.toml:2: ${section}.${key} = "mine": there is no sequence of this name`), out)
      put(at, `${FOLDER}/mine.xml`, file('mine', '<send/>'))
      assert.equal((await checked(at)).code, 0)
      put(at, 'deployment.toml', `[${section}]\n${key} = ""\n`)
      assert.equal((await checked(at)).code, 0)
    })
  }
}

test('the documented name needs no file, but a broken file of that name is an error', async () => {
  const at = home()
  put(at, 'deployment.toml', '[transport.ws]\nsender.parameters.ws.outflow.dispatch.sequence = "outflowDispatchSeq"\n')
  assert.equal((await checked(at)).code, 0)
  put(at, `${FOLDER}/outflowDispatchSeq.xml`, file('outflowDispatchSeq', '<answer/>'))
  const { exited, said } = begin(at, 'start')
  assert.equal((await exited).code, 78)
  assert.match(
    said.text,
    /deployment\.toml:2: .*"outflowDispatchSeq": there is no sequence of this name, or it is faulty/,
  )
})

test('a broken dispatchSeq or outDispatchSeq refuses the start: the default would accept every upgrade', async () => {
  const names = ['dispatchSeq', 'outDispatchSeq']
  const at = home()
  for (const name of names) put(at, `${FOLDER}/${name}.xml`, file(name, '<answer/>'))
  const { code, err } = await sluice(at, 'start')
  assert.equal(code, 78)
  for (const name of names)
    assert.match(err, new RegExp(`${name}\\.xml: is faulty, and decides which clients get a WebSocket`))
})

test('an edited sequence applies after a reload; a broken one keeps the active sequence', async () => {
  const gateway = await start()
  put(gateway.home, `${FOLDER}/dispatchSeq.xml`, file('dispatchSeq', '<drop/>'))
  assert.deepEqual((await reload(gateway)).sequences, { changed: ['dispatchSeq'], kept: [] })
  assert.equal(await asked(gateway), 403)
  put(gateway.home, `${FOLDER}/dispatchSeq.xml`, file('dispatchSeq', '<answer/>'))
  assert.deepEqual((await reload(gateway)).sequences, { changed: [], kept: ['dispatchSeq'] })
  assert.equal(await asked(gateway), 403)
})
