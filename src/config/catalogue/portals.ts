/** What is about the portals of the reference platform and has no counterpart here. */
import { allInert, alsoSpelled, type Key, sameAs, section } from '../key.ts'
import { choice, count, duration, flag, secret, text, url, words } from '../kinds.ts'
import { givesWay, needsFlag } from './agreements.ts'

const DEVELOPER_PORTAL = 'there is no developer portal'
const WORKFLOWS = 'there is no workflow engine'
const SDKS = 'there is no generator of client libraries'
const INDEX = 'there is no registry that would be indexed'
const WEB = ['https', 'http'] as const
const DAY_S = 86_400

export const developerPortal = section(
  'apim.devportal',
  'The portal in which developers find APIs and subscribe to them.',
  allInert(
    {
      url: url('https://localhost:9443/devportal', WEB, 'Address of the portal.'),
      enable_application_sharing: flag(false, 'Let users of one group share their applications.'),
      application_sharing_type: choice('default', ['default', 'saml'], 'How users are put into groups.'),
      application_sharing_impl: text('', 'Class that puts users into groups; wins over `application_sharing_type`.'),
      application_sharing_claim: text('', 'URI of the claim that names the organization of a user.'),
      login_username_case_insensitive: flag(true, 'Take a name for the same in whatever case it is written.'),
      display_multiple_versions: flag(false, 'Show all versions of an API and not only the latest.'),
      display_deprecated_apis: flag(false, 'Show deprecated APIs.'),
      enable_comments: flag(true, 'Let users comment on APIs.'),
      enable_ratings: flag(true, 'Let users rate APIs.'),
      enable_forum: flag(true, 'Let users discuss APIs.'),
    },
    DEVELOPER_PORTAL,
  ),
  {
    roles: ['api-devportal'],
    rules: [
      givesWay('application_sharing_type', 'application_sharing_impl'),
      needsFlag('application_sharing_type', 'enable_application_sharing'),
      needsFlag('application_sharing_impl', 'enable_application_sharing'),
      needsFlag('application_sharing_claim', 'enable_application_sharing'),
    ],
  },
)

/** A URL, or its path alone for one at this gateway. */
function endpoint(fallback: string, meaning: string): Key<string> {
  const plain = text(fallback, meaning)
  const whole = url('', WEB, meaning)
  const read = (given: unknown): string | undefined => {
    const path = plain.read(given)
    return path !== undefined && /^\/[^\s/?#]/.test(path) ? path : whole.read(given)
  }
  return { ...plain, expects: `${whole.expects}, or a path such as "/token"`, read }
}

export const workflow = section(
  'apim.workflow',
  'A workflow engine that approves what users ask for.',
  allInert(
    {
      enable: flag(false, 'Have the engine approve what users ask for.'),
      service_url: url('https://localhost:9445/bpmn', WEB, 'Address of the engine.'),
      wf_engine_user: alsoSpelled(['username'], sameAs('super_admin.username', text('', 'Account at the engine.'))),
      wf_engine_pass: alsoSpelled(
        ['password'],
        sameAs('super_admin.password', secret('Password that goes with `wf_engine_user`.')),
      ),
      callback_endpoint: endpoint(
        '/api/am/publisher/v0.15/workflows/update-workflow-status',
        'Where the engine reports its decision.',
      ),
      token_endpoint: endpoint('/token', 'Where the engine gets its token.'),
      client_registration_endpoint: endpoint(
        '/client-registration/v0.15/register',
        'Where the engine registers as a client.',
      ),
      client_registration_username: text('', 'Account that the engine registers with.'),
      client_registration_password: secret('Password that goes with `client_registration_username`.'),
    },
    WORKFLOWS,
  ),
  { roles: ['api-devportal', 'api-publisher'] },
)

const LANGUAGES = [
  ...['android', 'java', 'scala', 'csharp', 'dart', 'flash', 'groovy', 'javascript', 'jmeter', 'nodejs', 'perl', 'php'],
  ...['python', 'ruby', 'swift', 'clojure', 'asyncScala', 'csharpDotNet2'],
]

export const sdk = section(
  'apim.sdk',
  'Client libraries that the developer portal generates.',
  allInert(
    {
      group_id: text('', 'Group of a generated project.'),
      artifact_id: text('', 'Name of a generated project.'),
      model_package: text('', 'Package of the data types in a generated project.'),
      api_package: text('', 'Package of the calls in a generated project.'),
      supported_languages: words(LANGUAGES, 'Languages that client libraries are offered in.'),
    },
    SDKS,
  ),
  { roles: ['api-devportal'] },
)

export const indexing = section(
  'indexing',
  'The search index of the portals.',
  allInert(
    {
      enable: flag(true, 'Keep the index; needed only on nodes with a publisher or developer portal.'),
      starting_delay: duration(35, 's', 0, DAY_S, 'How long after the start indexing begins.'),
      frequency: duration(3, 's', 1, DAY_S, 'How often changes are looked for.'),
      bach_size: count(40, 'resources', 1, 1_000_000, 'Resources indexed in one go.'),
      pool_size: count(40, 'threads', 1, 10_000, 'Threads that index.'),
      re_indexing: count(0, '', 0, 1_000_000_000, 'Raised by one, this number has everything indexed anew.'),
    },
    INDEX,
  ),
  { roles: ['api-devportal', 'api-publisher'] },
)
