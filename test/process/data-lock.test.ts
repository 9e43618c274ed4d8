/** The lock of the data folder: one process at a time, also where many find the lock of a killed process. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { DataLock, DataLocked } from '../../src/primary/data-lock.ts'
import { eventually } from '../harness/peers.ts'
import { Program } from '../harness/program.ts'

const ROUNDS = 40
const STARTERS = 5
/** An id that no process has. */
const DEAD = '4194999 1'

const root = mkdtempSync(join(tmpdir(), 'sluice-lock-'))
const programs: Program[] = []
after(async () => {
  for (const program of programs) await program.kill()
  rmSync(root, { recursive: true })
})

function folder(name: string, ...left: readonly string[]): string {
  const path = join(root, name)
  mkdirSync(path)
  for (const file of left) writeFileSync(join(path, file), DEAD)
  return path
}

for (const [what, left] of [
  ['nothing', []],
  ['a lock', ['lock']],
  ['the second lock of a replacement', ['lock.over']],
  ['a lock and the second locks of two replacements', ['lock', 'lock.over', 'lock.over.over']],
] as const) {
  test(`where killed processes have left ${what}, one process takes and releases the lock`, () => {
    const path = folder(what, ...left)
    const lock = DataLock.take(path)
    assert.throws(() => DataLock.take(path), DataLocked)
    assert.ok(readdirSync(path).includes('lock'))
    lock.release()
    assert.ok(!readdirSync(path).includes('lock'))
  })
}

test('of several processes that find the lock of a killed one, one gets it', async () => {
  const paths = Array.from({ length: ROUNDS }, (_, round) => folder(`round-${round}`, 'lock'))
  const go = join(root, 'go')
  const code = `
    import { existsSync } from 'node:fs'
    import { DataLock } from ${JSON.stringify(resolve(import.meta.dirname, '../../src/primary/data-lock.ts'))}
    console.log('here')
    while (!existsSync(${JSON.stringify(go)}));
    for (const [round, path] of ${JSON.stringify(paths)}.entries()) {
      try {
        DataLock.take(path)
        console.log('got ' + round + ';')
      } catch (error) {
        if (error.name !== 'DataLocked') throw error
      }
    }
    console.log('done')
    setInterval(() => {}, 1000)`
  for (let starter = 0; starter < STARTERS; starter++) {
    programs.push(new Program(process.execPath, ['--input-type=module', '-e', code]))
  }
  for (const program of programs) await program.out.until(/here/)
  writeFileSync(go, '')
  for (const program of programs) await program.out.until(/done/)
  const all = programs.map(program => program.out.text).join('')
  for (let round = 0; round < ROUNDS; round++) assert.equal(all.split(`got ${round};`).length - 1, 1, `round ${round}`)
})

/** The lock that a living process would have taken. */
function lockOf(pid: number): string {
  return `${pid} ${readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')[19]}`
}

test('a killed process that its parent has not asked about holds no lock', async () => {
  // The second program takes the place of the shell, and asks about no child.
  const program = new Program('sh', ['-c', 'sleep 100 & echo "$!;"; exec sleep 100'])
  programs.push(program)
  const [, pid] = await program.out.until(/^(\d+);$/m)
  // Until then the shell is the parent, and may ask.
  const parent = `/proc/${program.child.pid}/comm`
  await eventually('the place of the shell is taken', () => readFileSync(parent, 'latin1') === 'sleep\n')
  const path = folder('zombie')
  writeFileSync(join(path, 'lock'), lockOf(Number(pid)))
  assert.throws(() => DataLock.take(path), DataLocked)
  process.kill(Number(pid), 'SIGKILL')
  await eventually('the end of the process', () => / Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1')))
  DataLock.take(path).release()
})

test('a successor waits for the end of the process that holds the lock', async () => {
  const program = new Program('sleep', ['0.5'])
  programs.push(program)
  const path = folder('ending')
  writeFileSync(join(path, 'lock'), lockOf(program.child.pid!))
  assert.throws(() => DataLock.take(path), DataLocked)
  const lock = await DataLock.takeOver(path)
  lock.release()
})

const INSTEAD: readonly (readonly [what: string, make: (path: string) => void, code: string])[] = [
  ['a file', path => writeFileSync(path, ''), 'EEXIST'],
  ['inside of a file', path => writeFileSync(dirname(path), ''), 'ENOTDIR'],
  ['a link to itself', path => symlinkSync(path, path), 'ELOOP'],
  ['a folder whose lock is a folder', path => mkdirSync(join(path, 'lock'), { recursive: true }), 'EISDIR'],
]

for (const [what, make, code] of INSTEAD) {
  test(`a data folder that is ${what} is refused in one sentence`, () => {
    const parent = folder(`instead-${code}`)
    const path = join(parent, 'deep', 'data')
    if (code !== 'ENOTDIR') mkdirSync(dirname(path))
    make(path)
    assert.throws(
      () => DataLock.take(path),
      (error: Error) => {
        assert.ok(error instanceof DataLocked)
        assert.match(error.message, new RegExp(`^${path} cannot be the data folder \\(${code}: .*give --data DIR$`))
        return true
      },
    )
  })
}
