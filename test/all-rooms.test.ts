/**
 * The tests of rooms that hold nothing between them, in one process: by itself each of these files would load the
 * sources again. What starts gateways, threads or programs has a process of its own (`package.json`, test:handles).
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'

const ROOMS =
  'cli,config,exchange,fault,handlers,http1,identity,mediation,observe,protocol,route,store,structure,target,tidy,tls'
const ROOT = resolve(import.meta.dirname, '..')

const rooms = globSync(`test/{${ROOMS}}/*.test.ts`, { cwd: ROOT }).sort()
for (const file of rooms) {
  try {
    await import(resolve(ROOT, file))
  } catch (error) {
    test(`${file} can be loaded`, () => Promise.reject(error))
  }
}

test('every test file is run by npm test, and once', () => {
  const { scripts } = JSON.parse(readFileSync(resolve(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const own = [...scripts['test:handles']!.matchAll(/"(test\/[^"]+)"/g)].flatMap(([, glob]) =>
    globSync(glob!, { cwd: ROOT }),
  )
  assert.deepEqual([...own, ...rooms].sort(), globSync('test/**/*.test.ts', { cwd: ROOT }).sort())
})
