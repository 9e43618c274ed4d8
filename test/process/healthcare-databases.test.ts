/** Concurrent changes through the gateway on each database, and what a killed process has acknowledged. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { KINDS, type RealDatabase, realDatabase } from '../control/registry/real-databases.ts'
import { startHealthcare } from '../harness/healthcare.ts'
import { leave, start } from '../harness/operator.ts'

after(leave)

const TYPE = '/HealthcareService'
const SERVICE = { resourceType: 'HealthcareService', active: true, name: 'Dental clinic' }
const CONDITIONAL_CREATES = 20
const UPDATES = 50
const ACKNOWLEDGED_MIN = 60
const ISSUER = '[oauth]\noidc.id_token.issuer = "https://gateway.example/oauth2/token"\n'

type Started = Awaited<ReturnType<typeof startHealthcare>>

/** In this order: the last one kills the process. */
const CLAUSES: readonly (readonly [string, (at: Started) => Promise<void>])[] = [
  ['twenty conditional creates at once make one service', oneCreation],
  ['of fifty updates with the same If-Match one wins, in each round', oneWinner],
  ['kill -9 during writes loses no acknowledged write', keepsAcknowledged],
]

for (const kind of KINDS) {
  describe(`the healthcare API on ${kind}`, () => {
    let database: RealDatabase | string = ''
    let at: Started
    before(async () => {
      database = await realDatabase(kind)
      if (typeof database === 'string') return
      at = await startHealthcare(project => project, [], database.toml === '' ? '' : `${ISSUER}${database.toml}`)
    })
    after(async () => {
      if (typeof database === 'string') return
      await leave()
      await database.remove()
    })
    for (const [clause, body] of CLAUSES) {
      test(clause, async t => {
        if (typeof database === 'string') t.skip(database)
        else await body(at)
      })
    }
  })
}

async function oneCreation({ ask }: Started): Promise<void> {
  const fields = { 'if-none-exist': 'identifier=urn:ids|race' }
  const body = { ...SERVICE, identifier: [{ system: 'urn:ids', value: 'race' }] }
  const create = () => ask('POST', TYPE, { fields, body })
  const all = await Promise.all(Array.from({ length: CONDITIONAL_CREATES }, create))
  const statuses = all.map(({ status }) => status).sort()
  assert.deepEqual(statuses, [...new Array(CONDITIONAL_CREATES - 1).fill(200), 201])
  assert.equal(new Set(all.map(({ json }) => json.id)).size, 1)
}

async function oneWinner({ ask }: Started): Promise<void> {
  const { json } = await ask('POST', TYPE, { body: SERVICE })
  for (let version = 1; version <= 3; version++) {
    const fields = { 'if-match': `W/"${version}"` }
    const updates = Array.from({ length: UPDATES }, (_, number) =>
      ask('PUT', `${TYPE}/${String(json.id)}`, { fields, body: { ...SERVICE, id: json.id, name: `${number}` } }),
    )
    const statuses = (await Promise.all(updates)).map(({ status }) => status).sort()
    assert.deepEqual(statuses, [200, ...new Array(UPDATES - 1).fill(412)])
  }
}

async function keepsAcknowledged({ at, ask, program, token }: Started): Promise<void> {
  const acknowledged: string[] = []
  const create = async (): Promise<void> => {
    for (;;) {
      const { status, json } = await ask('POST', TYPE, { body: SERVICE })
      if (status === 201) acknowledged.push(String(json.id))
      if (acknowledged.length === ACKNOWLEDGED_MIN) program.signal('SIGKILL')
    }
  }
  await Promise.allSettled(Array.from({ length: 8 }, create))
  await program.exited
  const again = await start(at)
  const authorization = `Bearer ${await token('system/HealthcareService.r')}`
  assert.ok(acknowledged.length >= ACKNOWLEDGED_MIN)
  for (const id of acknowledged) {
    const url = `http://127.0.0.1:${again.port}/healthcare/HealthcareService/${id}`
    const response = await fetch(url, { headers: { authorization } })
    assert.equal(response.status, 200, await response.text())
  }
}
