/** The developer portal, of which a node has the REST API and no pages; SDK generators and indexes, not acted on. */
import { isTrue } from '../conditions.ts'
import { allActIf, allInert, inert, live, section } from '../key.ts'
import { choice, integer, duration, flag, text, url, list } from '../kinds.ts'

const SDKS = 'there is no generator of client libraries'
const INDEX = 'APIs are searched in memory, without an index'
const WEB = ['https', 'http'] as const
const DAY_S = 86_400

export const developerPortal = section(
  'apim.devportal',
  'The portal in which developers find APIs and subscribe to them.',
  {
    ...allInert(
      { url: url('https://localhost:9443/devportal', WEB, 'Address of the portal.') },
      'the portal has its REST API, but no pages',
    ),
    ...allInert(
      {
        enable_application_sharing: flag(false, 'Let users of one group share their applications.'),
        application_sharing_type: choice('default', ['default', 'saml'], 'How users are assigned to groups.'),
        application_sharing_impl: text('', 'Class that assigns users to groups; overrides `application_sharing_type`.'),
        application_sharing_claim: text('', 'URI of the claim that names the organization of a user.'),
      },
      'an application belongs to one user; users are in no groups',
    ),
    login_username_case_insensitive: inert(
      flag(true, 'Ignore the case of user names at login.'),
      'CaseInsensitiveUsername of [user_store.properties] decides for every login',
    ),
    ...allActIf(isTrue('management.enable'), {
      display_multiple_versions: live(
        flag(false, 'List all versions of an API in the REST API of the portal, not only the latest.'),
      ),
      display_deprecated_apis: live(flag(false, 'List deprecated APIs in the REST API of the portal.')),
    }),
    ...allInert(
      {
        enable_comments: flag(true, 'Let users comment on APIs.'),
        enable_ratings: flag(true, 'Let users rate APIs.'),
        enable_forum: flag(true, 'Let users discuss APIs.'),
      },
      'the REST API of the portal has no comments, ratings or discussions',
    ),
  },
  {
    roles: ['api-devportal', 'api-key-manager'],
  },
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
      supported_languages: list(LANGUAGES, 'Languages of the offered client libraries.'),
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
      enable: flag(true, 'Maintain the index; needed only on nodes with a publisher or developer portal.'),
      starting_delay: duration(35, 's', 0, DAY_S, 'Time from the start until indexing begins.'),
      frequency: duration(3, 's', 1, DAY_S, 'Interval at which changes are indexed.'),
      bach_size: integer(40, 'resources', 1, 1_000_000, 'Resources indexed in one batch.'),
      pool_size: integer(40, 'threads', 1, 10_000, 'Threads that index.'),
      re_indexing: integer(0, '', 0, 1_000_000_000, 'Raising this number indexes everything again.'),
    },
    INDEX,
  ),
  { roles: ['api-devportal', 'api-publisher'] },
)
