/** Notification senders end to end: real gateways, a tenant, providers and mail servers; kills in between. */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { after, describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { UNRECORDED_MAX } from '../../src/delivery/sender-run.ts'
import { type RealDatabase, realDatabase } from '../control/registry/real-databases.ts'
import { leave, sluice } from '../harness/operator.ts'
import type { RunningGateway } from '../harness/program.ts'
import { IS_LONG, SEED } from '../harness/random.ts'
import { startMailServer } from '../mounted/notifications/stand-ins.ts'
import { ask, CONCURRENCY, createSmsSender, FailingProvider, notifyingHome } from './notifying.ts'
import { publish, startNotifying, tenantToken } from './notifying.ts'

const EVENTS = IS_LONG ? 10_000 : 120
/** Of two nodes. */
const SHARED_EVENTS = IS_LONG ? 10_000 : 80
/** Failures of one message: each further one waits longer. */
const FAILURES_MAX = IS_LONG ? 50 : 1
/** Most messages that were on the way, or whose results were not recorded, at a kill. */
const DUPLICATES_MAX = CONCURRENCY + UNRECORDED_MAX

after(leave)

async function provide(t: TestContext): Promise<FailingProvider> {
  const provider = await FailingProvider.listen(FAILURES_MAX, SEED)
  t.after(() => provider.close())
  return provider
}

/** Resolves once the gateway counts that many delivered messages of the sender. */
async function delivered(gateway: RunningGateway, token: string, count: number): Promise<void> {
  for (;;) {
    const { json } = await ask(gateway, token, '/deliveries/counts')
    const [row] = JSON.parse(String(json.text)) as readonly Readonly<Record<string, number>>[]
    if (row?.delivered === count) return
    await sleep(100)
  }
}

/** `ends`: how often a node that delivered was killed, lost its lease, or was interrupted. */
function assertDelivered(t: TestContext, provider: FailingProvider, ids: readonly string[], ends: number): void {
  const lost = ids.filter(id => !provider.taken.has(id))
  assert.deepEqual(lost, [], `${lost.length} events were lost, seed ${SEED}`)
  assert.ok(provider.duplicates <= ends * DUPLICATES_MAX, `${provider.duplicates} duplicates, seed ${SEED}`)
  const most = Math.max(...provider.taken.values())
  assert.ok(most <= 1 + ends, `an event was sent ${most} times after ${ends} ends of a lease`)
  t.diagnostic(`${ids.length} events, ${provider.duplicates} duplicates after ${ends} ends, seed ${SEED}`)
}

describe('notification senders', { concurrency: 3 }, () => {
  test('an event becomes an SMS and an e-mail; nothing is loaded before the first request', async t => {
    const provider = await provide(t)
    const mails = await startMailServer()
    t.after(() => mails.close())
    const gateway = await startNotifying(notifyingHome())
    const pools = async () => JSON.parse((await sluice(gateway.home, 'pools', '--json')).out)
    const idle = await pools()
    assert.equal(idle.threads, 0)
    const token = await tenantToken(gateway)
    await createSmsSender(gateway, token, provider.url)
    const account = { userName: 'ann', password: 'mail-secret' }
    const smtp = { smtpServerHost: '127.0.0.1', smtpPort: mails.port, fromAddress: 'acme@example.com', ...account }
    const properties = [{ key: 'mail.smtp.starttls.enable', value: 'false' }]
    const created = await ask(gateway, token, '/email', { name: 'mails', ...smtp, properties })
    assert.equal(created.status, 201, JSON.stringify(created.json))
    const text = 'Ünïcödé “quotes”, 😀'
    const sms = { type: 'sms', recipient: '+15550100', text }
    const email = { type: 'email', recipient: 'bob@example.com', subject: 'Hello', text }
    for (const event of [sms, email]) {
      const { status, json } = await ask(gateway, token, '/events', event)
      assert.equal(status, 202, JSON.stringify(json))
    }
    await provider.until(1)
    while (mails.received.length < 1) await sleep(20)
    const [mail] = mails.received
    assert.deepEqual([mail!.from, mail!.to, mail!.user], ['acme@example.com', ['bob@example.com'], 'ann'])
    // A result is recorded some milliseconds after the provider has it, and its figures become metrics in turn.
    for (const channel of ['sms', 'email']) {
      const figures = [
        `events_total{channel="${channel}",event="delivered"}`,
        `events_total{channel="${channel}",event="accepted"}`,
        `duration_seconds_count{channel="${channel}"}`,
      ]
      for (const figure of figures) await untilMetric(gateway, `sluice_delivery_${figure} 1`)
    }
    const { history, pools: rows } = await pools()
    assert.ok(history.find(({ name }: { name: string }) => name === 'background').tasks >= 3)
    assert.ok(rows.find(({ name }: { name: string }) => name === 'background').running <= 2)
    assert.ok(!gateway.program.err.text.includes('mail-secret'))
  })

  test(`${EVENTS} events pass a provider that fails, and a kill -9 in between; none is lost`, async t => {
    const provider = await provide(t)
    const at = notifyingHome()
    const first = await startNotifying(at)
    const token = await tenantToken(first)
    await createSmsSender(first, token, provider.url)
    const half = Math.floor(EVENTS / 2)
    const ids = [...(await publish(first, token, half))]
    await provider.until(Math.floor(half / 2))
    await first.program.kill()
    const second = await startNotifying(at)
    // No request is needed for what waits.
    await provider.until(half)
    ids.push(...(await publish(second, token, EVENTS - half)))
    await provider.until(EVENTS)
    await delivered(second, token, EVENTS)
    assertDelivered(t, provider, ids, 1 + interruptions([first, second]))
  })

  for (const kind of ['postgre', 'mysql'] as const) {
    test(`of two nodes on one ${kind} one delivers; the other takes over when it is killed`, async t => {
      const database = await realDatabase(kind)
      if (typeof database === 'string') return t.skip(database)
      t.after(() => database.remove())
      const provider = await provide(t)
      // The first one makes the administrator.
      const nodes = [
        await startNotifying(notifyingHome(database.toml)),
        await startNotifying(notifyingHome(database.toml)),
      ]
      t.after(() => Promise.all(nodes.map(({ program }) => program.kill())))
      const token = await tenantToken(nodes[0]!)
      await createSmsSender(nodes[0]!, token, provider.url)
      const ids = await publish(nodes[0]!, token, SHARED_EVENTS)
      await provider.until(Math.floor(SHARED_EVENTS / 2))
      const holder = await holderOf(database)
      const [dies, lives] = holder === nameOf(nodes[0]!) ? nodes : [nodes[1]!, nodes[0]!]
      assert.equal(holder, nameOf(dies!))
      await dies!.program.kill()
      await provider.until(SHARED_EVENTS)
      assert.equal(await holderOf(database), nameOf(lives!))
      await delivered(lives!, token, SHARED_EVENTS)
      // A node that gets no processor does not renew its lease: another one takes it, or its runs are interrupted.
      const takings = await takingsOf(database)
      assert.ok(takings >= 2, 'the lease was taken again')
      assertDelivered(t, provider, ids, takings - 1 + interruptions(nodes))
    })
  }
})

/** Resolves once the metrics have this line. */
async function untilMetric({ healthPort }: RunningGateway, line: string): Promise<void> {
  const read = async () => (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text()
  while (!(await read()).split('\n').includes(line)) await sleep(20)
}

function nameOf({ program }: RunningGateway): string {
  return `${hostname()}:${program.child.pid}`
}

/** How often the lease was taken, not renewed. */
async function takingsOf(database: RealDatabase): Promise<number> {
  const [row] = await database.run("select term from delivery_lease where holder <> ''")
  return Number(row!.term)
}

/** How often runs of deliveries ended before their messages did. */
function interruptions(nodes: readonly RunningGateway[]): number {
  const events = nodes.flatMap(({ program }) => program.events)
  return events.filter(({ msg }) => /^a run of deliveries is interrupted|^worker died/.test(String(msg))).length
}

async function holderOf(database: RealDatabase): Promise<string> {
  const rows = await database.run("select holder from delivery_lease where holder <> ''")
  assert.equal(rows.length, 1, 'there is one lease, with one holder')
  const holder = String(rows[0]!.holder)
  // Host and process may be those of another node.
  assert.match(holder, /:[\da-f]{24}$/)
  return holder.slice(0, holder.lastIndexOf(':'))
}
