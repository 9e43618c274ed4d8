/**
 * Chooses the socket implementation of the reactors (`socket_level`): handles on a known Node version whose self-test
 * in a child process has passed, else streams. The result is kept in `data/`: only the first start with a Node binary
 * runs the test (D17).
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface LevelChoice {
  readonly level: 'handles' | 'streams'
  readonly why: string
}

/** Node versions whose handles were reviewed and tested. */
const KNOWN_VERSIONS = /^v26\./
const TEST_MS = 10_000

export function chooseLevel(setting: 'auto' | 'handles' | 'streams', dataDir: string): LevelChoice {
  if (setting !== 'auto') return { level: setting, why: 'configured' }
  if (!KNOWN_VERSIONS.test(process.version))
    return { level: 'streams', why: `handles of Node ${process.version} are unknown` }
  if (Object.hasOwn(process, 'permission')) return { level: 'streams', why: 'Node runs with --permission' }
  const key = `${process.version} ${process.platform} ${process.arch} ${process.execPath}`
  const file = join(dataDir, 'socket-level.json')
  const kept = readResult(file)
  if (kept?.key === key) return { level: kept.passed ? 'handles' : 'streams', why: 'self-test of an earlier start' }
  const passed = selfTest()
  writeFileSync(file, `${JSON.stringify({ key, passed })}\n`)
  return { level: passed ? 'handles' : 'streams', why: passed ? 'self-test passed' : 'self-test failed' }
}

function selfTest(): boolean {
  const program = fileURLToPath(new URL('../socket/self-test.ts', import.meta.url))
  return spawnSync(process.execPath, [program], { timeout: TEST_MS, stdio: 'ignore' }).status === 0
}

function readResult(file: string): { key: string; passed: boolean } | undefined {
  try {
    const kept: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof kept !== 'object' || kept === null || !('key' in kept) || !('passed' in kept)) return undefined
    return typeof kept.key === 'string' && typeof kept.passed === 'boolean'
      ? { key: kept.key, passed: kept.passed }
      : undefined
  } catch {
    // No result yet, or an unreadable one: the test runs again.
    return undefined
  }
}
