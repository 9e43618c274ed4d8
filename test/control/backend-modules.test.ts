/** The operator's modules for backend tokens: where they may be, their input, and what their failures become. */
import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { BackendModules } from '../../src/control/backend-modules.ts'
import { ControlCallFailed } from '../../src/auth/control-protocol.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'

const TIMEOUT_MS = 50
const GENERATOR = 'generator_impl = "modules/made.mjs"\n'
const RETRIEVER = 'enable_user_claims = true\nclaims_extractor_impl = "modules/made.mjs"\n'

function homeWith(t: TestContext, keys: string, module: string): string {
  return temporaryHome(t, { 'deployment.toml': `[apim.jwt]\n${keys}`, 'modules/made.mjs': module })
}

function load(home: string): Promise<BackendModules> {
  return BackendModules.load(loadConfiguration(home, []).configuration['apim.jwt'], home, TIMEOUT_MS)
}

test('generator_impl gets the claims and returns the token', async t => {
  const module = 'export async function generateToken({ claims }) { return "made for " + claims.sub }'
  const modules = await load(homeWith(t, `enable = true\n${GENERATOR}`, module))
  assert.equal(await modules.generate({ sub: 'alice' }), 'made for alice')
  assert.equal(modules.retriever, null)
})

test('claims_extractor_impl gets the user and returns claims', async t => {
  const module = 'export const retrieveClaims = ({ user, tenant }) => ({ mail: user + "@" + tenant })'
  const modules = await load(homeWith(t, `enable = true\n${RETRIEVER}`, module))
  assert.deepEqual(await modules.retriever!({ user: 'a', tenant: 'b' }), { mail: 'a@b' })
})

test('no module is loaded where apim.jwt is not enabled', async t => {
  const modules = await load(homeWith(t, `enable = false\n${GENERATOR}${RETRIEVER}`, 'throw new Error("loaded")'))
  assert.equal(modules.retriever, null)
  await assert.rejects(modules.generate({}), ControlCallFailed)
})

const BROKEN: readonly (readonly [what: string, keys: string, module: string, cause: RegExp])[] = [
  ['exports nothing', GENERATOR, '', /exports no function generateToken/],
  ['cannot be loaded', GENERATOR, 'this is none', /cannot be loaded/],
  ['is not there', 'generator_impl = "gone.mjs"\n', '', /is not there \(ENOENT\)/],
  ['is outside of the folder', 'generator_impl = "../made.mjs"\n', '', /is not there|is outside/],
  ['is a link to the outside', 'generator_impl = "link.mjs"\n', '', /is outside of the configuration folder/],
]
for (const [what, keys, module, cause] of BROKEN) {
  test(`a module that ${what} is refused`, async t => {
    const home = homeWith(t, `enable = true\n${keys}`, module)
    symlinkSync(join(import.meta.filename), join(home, 'link.mjs'))
    await assert.rejects(load(home), cause)
  })
}

const FAILING: readonly (readonly [what: string, body: string, cause: RegExp])[] = [
  ['throws', 'throw new Error("out of ink")', /generator_impl has failed: out of ink/],
  ['throws no error', 'throw 1', /it threw no error/],
  ['returns no text', 'return { a: 1 }', /a value of the wrong type/],
  ['never resolves', 'return new Promise(() => {})', /has not responded within 50 ms/],
]
for (const [what, body, cause] of FAILING) {
  test(`a module that ${what} fails the call with the cause, without the input`, async t => {
    const modules = await load(
      homeWith(t, `enable = true\n${GENERATOR}`, `export function generateToken() { ${body} }`),
    )
    await assert.rejects(modules.generate({ sub: 'planted-secret' }), (error: Error) => {
      assert.ok(error instanceof ControlCallFailed)
      assert.match(error.message, cause)
      assert.doesNotMatch(error.message, /planted/)
      return true
    })
  })
}
