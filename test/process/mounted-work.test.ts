/** Work beside requests in the real program with two reactors: wake-ups of both, a reactor that dies, the end. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { openProject } from '../harness/open-project.ts'
import { ask, freePort } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

after(leave)

/** A job is a file in `jobs`, which its run moves to `done`; that with the name `waits` waits for its abort. */
const MODULE = `
import { readdirSync, renameSync, writeFileSync } from 'node:fs'
export const open = ({ settings: { folder }, wake }) => ({
  handle: ({ query }) => {
    writeFileSync(folder + '/jobs/' + query, '')
    wake()
    return { status: 202 }
  },
  work: {
    due: async () => ({ jobs: readdirSync(folder + '/jobs'), againMs: 60_000 }),
    run: async (job, signal) => {
      if (job === 'waits') await new Promise(resolve => signal.addEventListener('abort', resolve))
      renameSync(folder + '/jobs/' + job, folder + '/done/' + job)
    },
  },
})
`

const at = home()
for (const name of ['jobs', 'done']) mkdirSync(join(at.path, name))
put(at, 'apis/Working/working.mjs', MODULE)
const endpointConfig = { endpoint_type: 'mounted', module: 'working.mjs', work: true, settings: { folder: at.path } }
put(at, 'apis/Working/api.yaml', openProject({ name: 'Working', context: '/w', endpointConfig }))
put(at, 'jobs/before', '')
const port = await freePort()
const sets = ['transport.passthru_http.reactors=2', `transport.passthru_http.listener.parameters.port=${port}`]
const gateway = await start(at, sets, { SLUICE_TEST_HOOKS: '1' })

async function done(job: string): Promise<void> {
  while (!existsSync(join(at.path, 'done', job))) await sleep(10)
}

/** On a connection of its own: the system spreads connections over the reactors. */
async function add(job: string): Promise<void> {
  assert.match(await ask(port, 'POST', `/w/?${job}`), /^HTTP\/1\.1 202 /)
}

test('jobs begin with the gateway, and requests to both reactors wake them', async () => {
  await done('before')
  for (let job = 0; job < 8; job++) {
    await add(`job${job}`)
    await done(`job${job}`)
  }
})

test('pools and metrics count questions and jobs as background tasks, and a job holds a permit', async () => {
  await add('waits')
  const pools = async () => JSON.parse((await sluice(at, 'pools', '--json')).out)
  const named = (rows: readonly { readonly name: string }[]) => rows.find(({ name }) => name === 'background') as never
  let report = await pools()
  while ((named(report.pools) as { running: number }).running !== 1) report = await pools()
  const { tasks, failed, died } = named(report.history) as Record<string, number>
  assert.ok(tasks! >= 18, `${tasks} tasks`)
  assert.deepEqual([failed, died], [0, 0])
  const metrics = await ask(gateway.healthPort, 'GET', '/metrics')
  assert.match(metrics, /\nsluice_worker_permits\{pool="background"\} 1\n/)
})

test('a reactor that dies takes its jobs with it, and its replacement goes on', async () => {
  await ask(gateway.healthPort, 'POST', '/test/kill')
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  for (let job = 0; job < 4; job++) {
    await add(`later${job}`)
    await done(`later${job}`)
  }
  assert.ok(!existsSync(join(at.path, 'done', 'waits')))
})

test('a gateway that stops aborts its jobs and waits for them', async () => {
  gateway.program.signal('SIGTERM')
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
  assert.ok(existsSync(join(at.path, 'done', 'waits')))
})
