/** Work beside requests of mounted APIs, on real worker threads. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { GatewayOptions, TestGateway } from '../harness/gateway.ts'
import { mounted, mountedApi, startMounted } from '../harness/mounted.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const MODULE = fileURLToPath(new URL('./working-api.ts', import.meta.url))
const TIMES = { startMs: 0, spacingMs: 1, pauseMs: 1, lateMs: 200, endMs: 50 }

interface Working {
  readonly gateway: TestGateway
  readonly folder: string
}

function folderOf(t: TestContext, jobs: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-work-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const job of jobs) writeFileSync(join(folder, job), '')
  return folder
}

function workingApi(settings: object, work: 'start' | 'use' | 'off' | 'none') {
  return mountedApi({ mounted: mounted({ module: MODULE, settings: { ...settings }, work }) })
}

async function startWorking(
  t: TestContext,
  jobs: readonly string[],
  {
    settings = {},
    work = 'start' as Parameters<typeof workingApi>[1],
    ...options
  }: GatewayOptions & {
    settings?: object
    work?: Parameters<typeof workingApi>[1]
  } = {},
): Promise<Working> {
  const folder = folderOf(t, jobs)
  const gateway = await startMounted(t, { workTimes: TIMES, ...options }, [workingApi({ folder, ...settings }, work)])
  return { gateway, folder }
}

async function add(t: TestContext, { gateway }: Working, job: string): Promise<void> {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send(`POST /m/add?${encodeURIComponent(job)} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`)
  assert.equal((await takeResponse(client)).status, 202)
}

/** Resolves once so many log events have that name and job. */
async function reported({ gateway }: Working, event: string, job = '', count = 1): Promise<TestGateway['reports']> {
  for (;;) {
    const found = gateway.reports.filter(it => it.event === event && (job === '' || it.fields.JOB === job))
    if (found.length >= count) return found
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

test('jobs that are due at the start run once each, and a request wakes further ones', async t => {
  const working = await startWorking(t, ['one', 'two'])
  for (const job of ['one', 'two']) await reported(working, 'job ends', job)
  await add(t, working, 'three')
  await reported(working, 'job ends', 'three')
  assert.deepEqual(readdirSync(working.folder), [])
  const begun = working.gateway.reports.filter(({ event }) => event === 'job begins').map(({ fields }) => fields.JOB)
  assert.deepEqual(begun.sort(), ['one', 'three', 'two'])
})

test('due is asked again after againMs without a request', async t => {
  const working = await startWorking(t, ['first'], { settings: { againMs: 1 } })
  await reported(working, 'job ends', 'first')
  writeFileSync(join(working.folder, 'later'), '')
  await reported(working, 'job ends', 'later')
})

const FAILURES: readonly (readonly [job: string, event: string, cause: RegExp])[] = [
  ['throws', 'background job failed', /^TypeError at /],
  ['exits', 'background job failed', /^worker exited with code: 7$|^Terminating worker thread$/],
  ['is late', 'background job failed', /^not ended within 200 ms, and aborted$/],
  ['ignores its abort', 'background job failed', /^worker exited with code: 70$/],
]

for (const [job, event, cause] of FAILURES) {
  test(`a job that ${job} is logged with its cause and tried again`, async t => {
    const working = await startWorking(t, [job])
    const [failure] = await reported(working, event, job)
    assert.match(String(failure!.fields.CAUSE_OF_ERROR), cause)
    assert.equal(failure!.fields.API, 'mounted:1.0.0')
    await reported(working, 'job ends', job)
    assert.deepEqual(readdirSync(working.folder), [])
    assert.ok(!JSON.stringify(working.gateway.reports).includes('text of a client'))
  })
}

test('a job that ignores its abort costs its thread, with a line that says so', async t => {
  const working = await startWorking(t, ['ignores its abort'])
  const [line] = await reported(working, 'background job ignores its abort')
  assert.equal(line!.fields.JOB, 'ignores its abort')
  await reported(working, 'job ends')
})

test('a job that blocks its thread is replaced with it', async t => {
  const working = await startWorking(t, ['blocks'])
  const [failure] = await reported(working, 'background job failed')
  assert.equal(failure!.fields.JOB, 'blocks')
  const [death] = await reported(working, 'worker died; a replacement starts')
  assert.match(String(death!.fields.CAUSE_OF_ERROR), /^no sign of life for /)
  await reported(working, 'job ends')
})

const QUESTIONS: readonly (readonly [due: string, how: string, cause: RegExp])[] = [
  ['throws', 'throws', /^RangeError at /],
  ['nothing', 'returns nothing', /^due has to return jobs: /],
]

for (const [due, how, cause] of QUESTIONS) {
  test(`a due that ${how} is logged and asked again, each time later`, async t => {
    const working = await startWorking(t, [], { settings: { due } })
    const failures = await reported(working, 'background work failed', '', 3)
    assert.match(String(failures[0]!.fields.CAUSE_OF_ERROR), cause)
    assert.deepEqual(
      failures.slice(0, 3).map(({ fields }) => fields.PAUSE_MS),
      [1, 2, 4],
    )
  })
}

test('a reload aborts the jobs of a changed API, and starts new ones once they have ended', async t => {
  const working = await startWorking(t, ['waits for its abort'])
  await reported(working, 'job begins')
  const changed = workingApi({ folder: working.folder, edition: 2 }, 'start')
  await working.gateway.deploy({ planned: [changed] })
  await reported(working, 'job begins', '', 2)
  const order = working.gateway.reports.map(({ event }) => event).filter(event => /^job /.test(event))
  assert.deepEqual(order.slice(0, 3), ['job begins', 'job aborted', 'job begins'])
  assert.deepEqual(order.slice(3), [])
})

test('the removal of an API aborts its jobs and starts no further one', async t => {
  const working = await startWorking(t, ['waits for its abort'])
  await reported(working, 'job begins')
  await working.gateway.deploy({ removed: ['/m'] })
  await reported(working, 'job aborted')
  const tasks = working.gateway.metrics().counts.backgroundTasks
  await add(t, await startWorking(t, []), 'of another gateway')
  assert.equal(working.gateway.metrics().counts.backgroundTasks, tasks)
})

test('a gateway that stops aborts its jobs and waits for them', async t => {
  const working = await startWorking(t, ['waits for its abort'])
  await reported(working, 'job begins')
  await working.gateway.reactor.stopWork()
  // Log events of a thread come through another port than its results.
  await reported(working, 'job aborted')
  await add(t, working, 'later')
  assert.deepEqual(readdirSync(working.folder).sort(), ['later', 'waits for its abort'])
})

test('work that waits for the first use of its API loads nothing before, and begins with it', async t => {
  const working = await startWorking(t, ['one'], { work: 'use', database: null })
  const { counts } = working.gateway.metrics()
  assert.equal(counts.backgroundTasks, 0)
  assert.ok(!working.gateway.reports.some(({ event }) => event === 'opened'))
  await add(t, working, 'two')
  await reported(working, 'job ends', 'one')
  await reported(working, 'job ends', 'two')
})

test('global_timeout_interval ends no job', async t => {
  const working = await startWorking(t, ['is late'], { responseTimeoutMs: 20 })
  const [failure] = await reported(working, 'background job failed')
  assert.match(String(failure!.fields.CAUSE_OF_ERROR), /^not ended within 200 ms/)
})

for (const work of ['none', 'off'] as const) {
  test(`work of an API runs not where its project says ${work === 'none' ? 'nothing' : 'work: false'}`, async t => {
    const working = await startWorking(t, ['one'], { work })
    await add(t, working, 'two')
    assert.equal(working.gateway.metrics().counts.backgroundTasks, 0)
    const warned = working.gateway.reports.some(({ event }) => event === 'work of a mounted API does not run')
    assert.equal(warned, work === 'none')
  })
}
