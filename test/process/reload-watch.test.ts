/** `start --watch`: changes of API files are deployed, however they are written, and nothing else is. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiWatch } from '../../src/primary/api-watch.ts'
import { takeResponse } from '../harness/responses.ts'
import { UnreliableBackend } from '../harness/unreliable-backend.ts'
import { dial, home, leave, start } from '../harness/operator.ts'
import { eventually, GUARD_MS, type Peer, quiet } from '../harness/peers.ts'
import { put, putApi, removeApi } from '../harness/reloading.ts'

after(leave)

async function patient(t: TestContext, name: string): Promise<string> {
  const backend = await UnreliableBackend.start(name)
  t.after(() => backend.stop())
  return `http://127.0.0.1:${backend.port}`
}

/** Repeats a request on one connection until it gets this response. */
async function until(client: Peer, path: string, wanted: number | string): Promise<void> {
  let last: number | string = ''
  const end = performance.now() + GUARD_MS
  while (last !== wanted) {
    assert.ok(performance.now() < end, `waited in vain for ${wanted} at ${path}, was answered ${last}`)
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const { status, body } = await takeResponse(client)
    last = status === 200 ? body : status
    if (last !== wanted) await sleep(2)
  }
}

const at = home()
rmSync(join(at.path, 'apis'), { recursive: true })
/** The gateway of all tests; it starts without the folder `apis`. */
const gateway = await start(at, [], {}, ['--watch'])

test('the folder apis may be created, emptied and replaced; a folder that is gone removes no API', async t => {
  const [a, b] = [await patient(t, 'a'), await patient(t, 'b')]
  const client = await dial(gateway)
  await until(client, '/t/', 404)
  putApi(at, 'Test', 't', a)
  await until(client, '/t/', 'a')
  renameSync(join(at.path, 'apis'), join(at.path, 'old'))
  await gateway.program.err.until(/apis: is gone; its APIs stay deployed/)
  await until(client, '/t/', 'a')
  // A link to another folder is replaced by renaming another link over it.
  putApi({ ...at, path: join(at.path, 'elsewhere') }, 'Test', 't', b)
  symlinkSync(join(at.path, 'elsewhere', 'apis'), join(at.path, 'link'))
  renameSync(join(at.path, 'link'), join(at.path, 'apis'))
  await until(client, '/t/', 'b')
  symlinkSync(join(at.path, 'old'), join(at.path, 'link'))
  renameSync(join(at.path, 'link'), join(at.path, 'apis'))
  await until(client, '/t/', 'a')
  rmSync(join(at.path, 'apis'))
  mkdirSync(join(at.path, 'apis'))
  await until(client, '/t/', 404)
})

test('files that are added, replaced, written in place, broken and removed are deployed', async t => {
  const [a, b] = [await patient(t, 'a'), await patient(t, 'b')]
  putApi(at, 'Test', 't', a)
  const client = await dial(gateway)
  await until(client, '/t/', 'a')
  // Editors write a file beside the old one and rename it.
  putApi(at, 'Test', 't', b)
  await until(client, '/t/', 'b')
  putApi(at, 'New', 'new', a)
  await until(client, '/new/', 'a')
  writeFileSync(join(at.path, 'apis/New/api.yaml'), 'type: api\ndata: [')
  await gateway.program.err.until(/New\/api\.yaml/)
  await until(client, '/new/', 'a')
  removeApi(at, 'New')
  await until(client, '/new/', 404)
  // The configuration file is not watched.
  put(at, 'deployment.toml', 'nonsense')
  putApi(at, 'Other', 'other', a)
  await until(client, '/other/', 'a')
  assert.equal(client.ending, '')
})

test('without --watch no file is deployed by itself', async t => {
  const [a, b] = [await patient(t, 'a'), await patient(t, 'b')]
  const other = home()
  for (const each of [at, other]) putApi(each, 'Test', 't', a)
  const two = await start(other)
  const [first, second] = [await dial(gateway), await dial(two)]
  await until(first, '/t/', 'a')
  for (const each of [other, at]) putApi(each, 'Test', 't', b)
  await until(first, '/t/', 'b')
  await until(second, '/t/', 'a')
})

test('changes in quick succession are one reload; endless changes do not delay it', async t => {
  const path = mkdtempSync(join(tmpdir(), 'sluice-watch-'))
  t.after(() => rmSync(path, { recursive: true }))
  const file = join(path, 'apis', 'A', 'api.yaml')
  mkdirSync(join(path, 'apis', 'A'), { recursive: true })
  let changes = 0
  let written = 0
  const changed = (): void => void changes++
  const watch = new ApiWatch(path, { changed, warn: cause => assert.fail(cause) })
  t.after(() => watch.stop())
  let lastMs = performance.now()
  let pauseMs = 0
  await eventually('a change while it is written on and on', () => {
    const nowMs = performance.now()
    pauseMs = Math.max(pauseMs, nowMs - lastMs)
    lastMs = nowMs
    writeFileSync(file, String(written++))
    return changes > 0
  })
  // On a busy machine a pause of the test is the quiet that the watch waits for.
  assert.ok(written > 10 || pauseMs > 100, `${written} changes, a pause of ${pauseMs} ms`)
  watch.stop()
  const before = changes
  writeFileSync(file, 'more')
  mkdirSync(join(path, 'apis', 'B'))
  await quiet()
  assert.equal(changes, before)
})
