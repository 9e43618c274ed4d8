/** Writes services to the embedded database in a folder, 16 at a time, and prints the id and version of each commit. */
import { MountedDatabases } from '../../../src/mounted/database-access.ts'
import { ServiceStorage } from '../../../src/mounted/healthcare/storage.ts'
import type { HealthcareTables } from '../../../src/mounted/healthcare/storage-schema.ts'
import { embeddedSettings, service } from './storage-databases.ts'

const WRITERS = 16

const [folder = '', name = ''] = process.argv.slice(2)
const databases = new MountedDatabases({ settings: embeddedSettings(), folder })
const storage = await ServiceStorage.open(databases.of<HealthcareTables>('HealthcareService'))

async function write(writer: number): Promise<void> {
  for (let turn = 0; ; turn++) {
    const id = `${name}-${writer}-${turn}`
    const made = await storage.write(change => change.create(service({ name: `${turn}` }), id))
    process.stdout.write(`${made.id} ${made.version}\n`)
    const { stored } = await storage.write(change => change.update(id, current => current!))
    process.stdout.write(`${stored.id} ${stored.version}\n`)
  }
}

await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
