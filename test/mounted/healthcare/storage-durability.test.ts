/** What the embedded database has acknowledged survives the end of the process, whenever it comes. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MountedDatabases } from '../../../src/mounted/database-access.ts'
import { ServiceStorage } from '../../../src/mounted/healthcare/storage.ts'
import type { HealthcareTables } from '../../../src/mounted/healthcare/storage-schema.ts'
import { BASE, embeddedSettings, searchOf, service } from './storage-databases.ts'

const WRITING = fileURLToPath(new URL('./writing-process.ts', import.meta.url))
const KILLS = 3
const ACKNOWLEDGED_MIN = 300

test('kill -9 of two processes that write loses no acknowledged version, and the index agrees', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-durable-'))
  const databases = new MountedDatabases({ settings: embeddedSettings(), folder })
  const database = databases.of<HealthcareTables>('HealthcareService')
  t.after(async () => {
    await database.kysely.destroy()
    rmSync(folder, { recursive: true })
  })
  const storage = await ServiceStorage.open(database)
  const versions = new Map<string, number>()
  for (let kill = 0; kill < KILLS; kill++) {
    await Promise.all(['a', 'b'].map(name => writeUntilKilled(folder, `${name}${kill}`, versions)))
    for (const [id, version] of versions) {
      const stored = await storage.read(id)
      assert.ok(stored !== undefined && stored.version >= version, `${id} has lost version ${version}`)
      assert.equal(JSON.parse(stored.content).meta.versionId, String(stored.version))
    }
  }
  const { total } = await storage.search(searchOf('_summary=count'), BASE)
  const named = await storage.search(searchOf('name:missing=false&_summary=count'), BASE)
  assert.ok(total! >= versions.size)
  assert.equal(named.total, total)
  const { rows } = await database.kysely
    .selectFrom('healthcare_texts')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  assert.equal(rows, total)
})

test('a thread that ends in its turn to write keeps no other from writing', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-turns-'))
  const database = new MountedDatabases({ settings: embeddedSettings(), folder }).of<HealthcareTables>(
    'HealthcareService',
  )
  t.after(async () => {
    await database.kysely.destroy()
    rmSync(folder, { recursive: true })
  })
  const storage = await ServiceStorage.open(database)
  const { promise: held, resolve: hold } = Promise.withResolvers<void>()
  const ended = navigator.locks.request('sluice healthcare changes', () => {
    hold()
    return new Promise(() => {})
  })
  const isStolen = assert.rejects(ended, { name: 'AbortError' })
  await held
  const made = Array.from({ length: 3 }, () => storage.write(writer => writer.create(service())))
  assert.deepEqual(
    (await Promise.all(made)).map(({ version }) => version),
    [1, 1, 1],
  )
  await isStolen
  assert.equal((await storage.write(writer => writer.create(service()))).version, 1)
})

test('a change whose log cannot be synced is no success, nor is any after it', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-synced-'))
  const database = new MountedDatabases({ settings: embeddedSettings(), folder }).of<HealthcareTables>('Care')
  t.after(async () => {
    await database.kysely.destroy()
    rmSync(folder, { recursive: true })
  })
  const storage = await ServiceStorage.open(database)
  const create = () => storage.write(writer => writer.create(service()))
  assert.equal((await create()).version, 1)
  const log = join(folder, 'api-Care.db-wal')
  renameSync(log, `${log}.gone`)
  // Nothing can sync a pipe.
  execFileSync('mkfifo', [log])
  await assert.rejects(create(), { code: 'EINVAL' })
  rmSync(log)
  renameSync(`${log}.gone`, log)
  const outcomes = await Promise.allSettled([create(), create(), storage.write(writer => writer.delete('none'))])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
})

/** Kills the process once it has told enough. A line that it has begun and not ended is none. */
async function writeUntilKilled(folder: string, name: string, versions: Map<string, number>): Promise<void> {
  const child = spawn(process.execPath, [WRITING, folder, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  let told = 0
  for await (const line of createInterface({ input: child.stdout })) {
    const [, id, version] = /^(\S+) (\d)$/.exec(line) ?? []
    if (id !== undefined) versions.set(id, Number(version))
    if (++told === ACKNOWLEDGED_MIN) child.kill('SIGKILL')
  }
  await ended
  assert.ok(told >= ACKNOWLEDGED_MIN)
}
