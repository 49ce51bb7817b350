"""Where someone can live, as far as a name tells: places that are well known, and names that are no places."""

from __future__ import annotations

import re

from muniment.memory.extraction.tables import word_set

__all__ = ["is_known_place", "is_no_place"]

_PLACES = word_set(
    """
    abu dhabi|accra|addis ababa|adelaide|afghanistan|alabama|alaska|albania|alberta|albuquerque|algeria|algiers|
    almaty|amman|amsterdam|anchorage|andorra|angola|ankara|antwerp|argentina|arizona|arkansas|armenia|athens|
    atlanta|auckland|austin|australia|austria|azerbaijan|baghdad|bahrain|baku|bali|baltimore|bangalore|bangkok|
    bangladesh|barbados|barcelona|basel|bath|bavaria|beijing|beirut|belfast|belgium|belgrade|belize|bengaluru|
    bergen|berkeley|berlin|bern|bilbao|birmingham|bogota|bogotá|boise|bolivia|bologna|bonn|bordeaux|bosnia|boston|
    botswana|boulder|brasilia|bratislava|brazil|bremen|brighton|brisbane|bristol|british columbia|brooklyn|brussels|
    bucharest|budapest|buenos aires|buffalo|bulgaria|busan|cairo|calcutta|calgary|california|cambodia|cambridge|
    cameroon|canada|canberra|cape town|caracas|cardiff|casablanca|catalonia|charleston|charlotte|chengdu|chennai|
    chicago|chile|china|cincinnati|cleveland|cologne|colombia|colorado|columbus|connecticut|copenhagen|cordoba|cork|
    cornwall|costa rica|croatia|cuba|cyprus|czech republic|czechia|daegu|daejeon|dakar|dallas|damascus|delaware|
    delhi|denmark|denver|detroit|dhaka|doha|dortmund|dresden|dubai|dublin|dubrovnik|durban|düsseldorf|ecuador|
    edinburgh|edmonton|egypt|el salvador|england|essen|estonia|ethiopia|exeter|fiji|finland|florence|florida|france|
    frankfurt|fukuoka|galway|gdansk|geneva|genoa|georgia|germany|ghana|ghent|glasgow|gothenburg|granada|greece|
    guadalajara|guangzhou|guatemala|haifa|hamburg|hangzhou|hanoi|hanover|harare|havana|hawaii|helsinki|
    ho chi minh city|honduras|hong kong|honolulu|houston|hungary|hyderabad|iceland|idaho|illinois|incheon|india|
    indiana|indianapolis|indonesia|innsbruck|iowa|iran|iraq|ireland|israel|istanbul|italy|jakarta|jamaica|japan|
    jeju|jerusalem|johannesburg|jordan|kansas|kansas city|karachi|kazakhstan|kentucky|kenya|kiev|kobe|kolkata|
    krakow|kraków|kuala lumpur|kuwait|kyiv|kyoto|lagos|lahore|laos|las vegas|latvia|lausanne|lebanon|leeds|
    leicester|leipzig|liechtenstein|lille|lima|lisbon|lithuania|liverpool|ljubljana|london|los angeles|louisiana|
    louisville|luxembourg|lyon|macau|madison|madrid|maine|malaga|málaga|malaysia|maldives|malmö|malta|manchester|
    manhattan|manila|marrakesh|marseille|maryland|massachusetts|mauritius|medellín|melbourne|memphis|mexico|
    mexico city|miami|michigan|milan|milwaukee|minneapolis|minnesota|minsk|mississippi|missouri|moldova|monaco|
    mongolia|montana|montenegro|montevideo|montreal|montréal|morocco|moscow|mozambique|mumbai|munich|myanmar|nagoya|
    nairobi|namibia|nantes|naples|nashville|nebraska|nepal|netherlands|nevada|new delhi|new hampshire|new jersey|
    new mexico|new orleans|new york|new york city|new zealand|newcastle|nicaragua|nice|nigeria|north carolina|
    north dakota|northern ireland|norway|norwich|nottingham|nova scotia|nuremberg|oakland|ohio|oklahoma|oman|
    ontario|oregon|orlando|osaka|oslo|ottawa|oxford|pakistan|palermo|panama|panama city|paraguay|paris|pennsylvania|
    perth|peru|philadelphia|philippines|phoenix|pittsburgh|poland|porto|portland|portugal|prague|pune|qatar|quebec|
    queens|queensland|raleigh|reykjavik|rhode island|riga|rio de janeiro|riyadh|romania|rome|rotterdam|russia|
    rwanda|sacramento|salt lake city|salzburg|san antonio|san diego|san francisco|san jose|santiago|sao paulo|
    são paulo|sapporo|sarajevo|saudi arabia|scotland|seattle|senegal|seoul|serbia|seville|shanghai|sheffield|
    shenzhen|singapore|slovakia|slovenia|sofia|south africa|south carolina|south dakota|south korea|spain|split|
    sri lanka|st. louis|stockholm|strasbourg|stuttgart|sudan|suzhou|sweden|switzerland|sydney|syria|taipei|taiwan|
    tallinn|tampa|tanzania|tasmania|tbilisi|tehran|tel aviv|tennessee|texas|thailand|the bay area|the hague|
    the netherlands|the philippines|the uk|the us|the usa|the united states|the united kingdom|tokyo|toronto|
    toulouse|trieste|tunisia|turin|turkey|uae|uganda|uk|ukraine|united kingdom|united states|uruguay|us|usa|utah|
    utrecht|valencia|vancouver|venezuela|venice|vermont|victoria|vienna|vietnam|vilnius|virginia|wales|warsaw|
    washington|wellington|west virginia|wisconsin|wuhan|wyoming|xi'an|yerevan|yokohama|york|yorkshire|zagreb|zambia|
    zimbabwe|zurich|zürich
    """
)

_TOOLS = word_set(
    """
    airtable|amazon|android|angular|ansible|anthropic|apple|arch|arduino|asana|atlassian|aws|azure|bash|basecamp|
    bitbucket|bitcoin|bluesky|bootstrap|brave|cassandra|chatgpt|chrome|claude|clickup|clojure|confluence|copilot|
    cursor|debian|discord|django|docker|dropbox|dvorak|edge|elixir|emacs|erlang|ethereum|evernote|excel|facebook|
    fastapi|fedora|figma|firebase|firefox|flask|flutter|freebsd|gemini|git|github|gitlab|gmail|go|golang|google|
    gradle|grafana|graphql|haskell|heroku|hulu|icloud|instagram|intellij|ios|java|javascript|jenkins|jira|jupyter|
    kafka|kotlin|kubernetes|laravel|lastpass|latex|linear|linkedin|linux|lua|mac|macos|markdown|mastodon|mercurial|
    meta|microsoft|minecraft|mint|miro|mongo|mongodb|monday|mysql|neovim|netflix|netlify|nextcloud|next|nginx|node|
    notepad|notion|npm|obsidian|office|openai|opera|oracle|outlook|pandas|perl|php|pinterest|plex|pop|postgres|
    postgresql|powerpoint|proton|protonmail|pycharm|python|pytorch|quickbooks|rails|react|reddit|redis|redmine|roam|
    ruby|rust|safari|salesforce|scala|sheets|shopify|signal|skype|slack|snapchat|snowflake|spark|splunk|spotify|sql|
    sqlite|steam|stripe|svelte|swift|tailwind|teams|telegram|tensorflow|terraform|threads|thunderbird|tidal|tiktok|
    todoist|trello|twitch|twitter|typescript|ubuntu|unity|vercel|vim|vivaldi|vscode|vue|webex|wechat|wezterm|
    whatsapp|windows|wordpress|xcode|yarn|youtube|zapier|zed|zendesk|zoom|zsh
    """
)
"""Names of products that people say they moved to."""

_ELSEWHERE = word_set(
    """
    accounting|analytics|consulting|design|development|devops|engineering|finance|hr|infrastructure|legal|logistics|
    management|marketing|operations|ops|product|qa|research|sales|security|support|basic|bronze|enterprise|gold|
    platinum|plus|premium|pro|silver|autumn|fall|spring|summer|winter|denial|fantasy|fear|harmony|heaven|hell|hope|
    limbo|luxury|misery|peace|poverty|reality|sin|gotham|hogwarts|mars|mordor|narnia|neverland|oz|wakanda|
    wonderland|cet|cst|edt|est|gmt|ist|jst|kst|mst|pdt|pst|utc|ai|bed|church|jeans|pajamas|sweatpants|it|i|mom|dad
    """
)
"""Teams, plans, seasons, states of mind, time zones, places of stories."""

_KINDS = re.compile(
    r"(?i)\b(?:team|department|dept|group|plan|tier|room|building|block|unit|apartment|floor|desk|gate|seat|row|chapter|"
    r"section|level|phase|stage|zone|time|mode|edition|version|corp|inc|ltd|university|college|bank|airlines|drive|code|"
    r"cloud|studio|desktop|office|workspace|docs|server|teams|search|music|pay|maps|pixel|iphone|galaxy|world)$|"
    r"^(?:team|room|building|block|unit|gate|row|group|platform|chapter|section|phase|stage|level|zone|plan|seat|table|"
    r"line|slide|page|google|microsoft|apple|amazon|adobe|visual)\b"
)
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")


def is_known_place(name: str) -> bool:
    """A country, state or larger city; or a place with its region: `Springfield, Illinois`."""
    first, _, region = name.casefold().replace("’", "'").partition(", ")
    return first in _PLACES or region in _PLACES


def is_no_place(name: str) -> bool:
    """A product, a team, a state of mind, an ordinal: what one can move to or live in without being there."""
    if is_known_place(name):
        return False
    words = name.casefold().split()
    is_named_so = words[0] in _TOOLS or name.casefold() in _ELSEWHERE or words[-1] in _TOOLS
    return is_named_so or _INNER_CAPITAL.search(name) is not None or _KINDS.search(name) is not None
