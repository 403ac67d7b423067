use std::fs;

use tempfile::TempDir;

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn consumer() -> Url {
    url("consumer://192.0.2.9/demo.Foo?version=1")
}

/// A view with these providers.
fn view(providers: &[&str]) -> Arc<ServiceView> {
    let urls: Arc<[Url]> =
        providers.iter().map(|host| url(&format!("dubbo://{host}:20880/demo.Foo?version=1"))).collect();
    let rule: Arc<[Url]> = Arc::from([url("override://0.0.0.0/demo.Foo?version=1&timeout=5")]);
    Arc::new(ServiceView {
        configurators: Category::Known { urls: rule, total: 1 },
        routers: Category::Known { urls: Arc::from([]), total: 0 },
        providers: Category::Known { total: urls.len(), urls },
        ..ServiceView::default()
    })
}

fn cache(folder: &TempDir) -> Arc<CacheFile> {
    Arc::new(CacheFile::at(folder.path().join("deep/er/test.cache"), WRITE_DELAY))
}

fn recorder(cache: &Arc<CacheFile>, params: &str) -> Recorder {
    Recorder::new(cache, &consumer(), &url(&format!("zookeeper://192.0.2.2:2181?{params}")))
}

async fn hosts(cache: &CacheFile) -> Option<Vec<String>> {
    let factory = UrlFactory::new();
    let view = cache.view(&consumer(), &Reader::new(&consumer(), &factory, "test"), &factory).await?;
    Some(view.providers.urls()?.iter().map(|url| url.host().to_owned()).collect())
}

#[tokio::test]
async fn what_was_recorded_is_read_by_the_next_process() {
    let folder = TempDir::new().unwrap();
    let before = cache(&folder);
    recorder(&before, "").record(&view(&["192.0.2.1", "192.0.2.2"]));
    before.flush().await;
    let after = cache(&folder);
    assert_eq!(hosts(&after).await.unwrap(), ["192.0.2.1", "192.0.2.2"]);
    let factory = UrlFactory::new();
    let view = after.view(&consumer(), &Reader::new(&consumer(), &factory, "test"), &factory).await.unwrap();
    assert_eq!(view.configurators.urls().unwrap().len(), 1);
    assert!(matches!(view.routers, Category::Unknown), "nothing is remembered of them");
}

#[tokio::test(start_paused = true)]
async fn changes_are_gathered_and_written_half_a_second_later() {
    let folder = TempDir::new().unwrap();
    let cache = cache(&folder);
    let recorder = recorder(&cache, "");
    recorder.record(&view(&["192.0.2.1"]));
    recorder.record(&view(&["192.0.2.2"]));
    tokio::time::sleep(Duration::from_millis(499)).await;
    assert!(!cache.path().exists());
    while cache.state.lock().scheduled {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(hosts(&cache).await.unwrap(), ["192.0.2.2"]);
    let leftovers: Vec<_> = fs::read_dir(cache.path().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "test.cache" && name != "test.cache.lock")
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[tokio::test]
async fn the_text_is_what_java_reads() {
    let folder = TempDir::new().unwrap();
    let cache = cache(&folder);
    recorder(&cache, "").record(&view(&["192.0.2.1"]));
    cache.flush().await;
    let text = fs::read_to_string(cache.path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "#Dubbo Registry Cache");
    assert_eq!(
        lines[2],
        "demo.Foo\\:1@consumer=override\\://0.0.0.0/demo.Foo?category\\=configurators&timeout\\=5&version\\=1 \
         dubbo\\://192.0.2.1\\:20880/demo.Foo?version\\=1"
    );
}

// C100
#[tokio::test]
async fn a_provider_and_a_consumer_of_one_service_do_not_overwrite_each_other() {
    let folder = TempDir::new().unwrap();
    let cache = cache(&folder);
    let registry = url("zookeeper://192.0.2.2:2181");
    let provider = url("provider://192.0.2.1:20880/demo.Foo?version=1&category=configurators&side=provider");
    Recorder::new(&cache, &consumer(), &registry).record(&view(&["192.0.2.1"]));
    let rules_only = ServiceView { providers: Category::Unknown, ..(*view(&[])).clone() };
    Recorder::new(&cache, &provider, &registry).record(&Arc::new(rules_only));
    cache.flush().await;
    assert_eq!(hosts(&cache).await.unwrap(), ["192.0.2.1"]);
}

// C100
#[tokio::test]
async fn an_empty_list_erases_the_last_good_one_only_without_protection() {
    for (protection, left) in [("true", Some(vec!["192.0.2.1".to_owned()])), ("false", None)] {
        let folder = TempDir::new().unwrap();
        let cache = cache(&folder);
        let recorder = recorder(&cache, &format!("enable-empty-protection={protection}"));
        recorder.record(&view(&["192.0.2.1"]));
        cache.flush().await;
        recorder.record(&view(&[]));
        cache.flush().await;
        assert_eq!(hosts(&cache).await, left, "protection {protection}");
        assert!(!fs::read_to_string(cache.path()).unwrap().contains("empty"));
    }
}

// C100
#[tokio::test]
async fn views_in_trouble_and_views_from_the_file_are_not_recorded() {
    let folder = TempDir::new().unwrap();
    let cache = cache(&folder);
    let recorder = recorder(&cache, "");
    recorder.record(&Arc::new(ServiceView { from_cache: true, ..(*view(&["192.0.2.1"])).clone() }));
    recorder
        .record(&Arc::new(ServiceView { trouble: Some("lost".into()), ..(*view(&["192.0.2.1"])).clone() }));
    cache.flush().await;
    assert!(!cache.path().exists());
}

// C100
#[tokio::test]
async fn a_corrupted_file_is_ignored_and_replaced() {
    let good = format!("demo.Foo\\:1@consumer={}\n", "dubbo\\://192.0.2.1\\:20880/demo.Foo?version\\=1");
    let garbage: [&[u8]; 5] = [
        b"",
        b"\xff\xfe\x00\\u12",
        b"demo.Foo\\:1@consumer=:::// dubbo://h:port/x \\",
        &good.as_bytes()[..40],
        b"\\",
    ];
    for bytes in garbage {
        let folder = TempDir::new().unwrap();
        let cache = cache(&folder);
        fs::create_dir_all(cache.path().parent().unwrap()).unwrap();
        fs::write(cache.path(), bytes).unwrap();
        assert_eq!(hosts(&cache).await, None);
        recorder(&cache, "").record(&view(&["192.0.2.7"]));
        cache.flush().await;
        assert_eq!(hosts(&cache).await.unwrap(), ["192.0.2.7"]);
    }
}

// C100
#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_is_given_up_after_three_attempts() {
    let folder = TempDir::new().unwrap();
    let blocked = folder.path().join("a file, not a folder");
    fs::write(&blocked, "").unwrap();
    let cache = Arc::new(CacheFile::at(blocked.join("test.cache"), WRITE_DELAY));
    let recorder = recorder(&cache, "");
    recorder.record(&view(&["192.0.2.1"]));
    let mut rounds = 0;
    while cache.state.lock().scheduled {
        tokio::time::sleep(Duration::from_millis(500)).await;
        rounds += 1;
        assert!(rounds < 20, "it does not try for ever");
    }
    assert!(cache.state.lock().given_up);
    recorder.record(&view(&["192.0.2.2"]));
    assert!(cache.state.lock().changes.is_empty(), "nothing piles up");
    assert_eq!(hosts(&cache).await, None);
}

// C100
#[tokio::test]
async fn processes_that_share_a_file_keep_each_others_entries() {
    let folder = TempDir::new().unwrap();
    let registry = url("zookeeper://192.0.2.2:2181");
    let others = cache(&folder);
    let other = url("consumer://192.0.2.9/demo.Bar");
    Recorder::new(&others, &other, &registry).record(&view(&["192.0.2.5"]));
    let ours = cache(&folder);
    recorder(&ours, "").record(&view(&["192.0.2.1"]));
    others.flush().await;
    ours.flush().await;
    let entries = read(ours.path());
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["demo.Bar@consumer", "demo.Foo:1@consumer"]);
}

// C100
#[tokio::test(start_paused = true)]
async fn a_file_locked_by_another_process_is_left_alone_until_it_is_free() {
    let folder = TempDir::new().unwrap();
    let cache = cache(&folder);
    fs::create_dir_all(cache.path().parent().unwrap()).unwrap();
    let mut lock_path = cache.path().as_os_str().to_owned();
    lock_path.push(".lock");
    let theirs = File::create(&lock_path).unwrap();
    theirs.lock().unwrap();
    let recorder = recorder(&cache, "");
    recorder.record(&view(&["192.0.2.1"]));
    while cache.state.lock().scheduled {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(cache.state.lock().warned_busy);
    assert!(!cache.path().exists());
    drop(theirs);
    recorder.record(&view(&["192.0.2.2"]));
    while cache.state.lock().scheduled {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(hosts(&cache).await.unwrap(), ["192.0.2.2"]);
}

// C100
#[test]
fn writers_at_the_same_time_never_leave_a_torn_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.cache");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let path = &path;
                scope.spawn(move || {
                    let mut written = 0;
                    while written < 20 {
                        let hosts: Vec<String> =
                            (0..50).map(|host| format!("198.51.{writer}.{host}")).collect();
                        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
                        let change = Change { view: view(&hosts[..1 + (written * 7) % 50]), protect: false };
                        match write_merged(path, &HashMap::from([(Arc::from(format!("w{writer}")), change)]))
                        {
                            Ok(()) => written += 1,
                            Err(WriteError::Busy) => std::thread::yield_now(),
                            Err(WriteError::Io(error)) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for text in read(&path).values() {
                    assert!(text.split(' ').all(|url| url.ends_with("version=1")), "{text}");
                }
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
        reader.join().unwrap();
    });
    assert_eq!(read(&path).len(), 4);
}

#[test]
fn the_default_name_holds_application_and_registry() {
    let registry = url("zookeeper://192.0.2.2:2181?application=shop/eu&backup=192.0.2.3:2181");
    assert_eq!(file_name(&registry), "dubbo-registry-shop-eu-192.0.2.2-2181.cache");
    let path = CacheFile::of_registry(&registry).unwrap().path().to_owned();
    assert!(path.ends_with(".dubbo/dubbo-registry-shop-eu-192.0.2.2-2181.cache"), "{path:?}");
    assert!(CacheFile::of_registry(&registry.with_param("file.cache", "false")).is_none());
    assert!(CacheFile::of_registry(&url("memory://local")).is_none());
    assert!(CacheFile::of_registry(&url("memory://local?file=/x/y")).is_some());
}

#[tokio::test]
async fn entries_that_do_not_match_the_consumer_are_left_out() {
    let folder = TempDir::new().unwrap();
    let cache = cache(&folder);
    fs::create_dir_all(cache.path().parent().unwrap()).unwrap();
    let urls = "dubbo://192.0.2.1:1/demo.Foo?version=1 dubbo://192.0.2.2:1/demo.Foo?version=2 empty://0.0.0.0/demo.Foo?version=1";
    fs::write(cache.path(), format!("demo.Foo\\:1@consumer={urls}\n")).unwrap();
    assert_eq!(hosts(&cache).await.unwrap(), ["192.0.2.1"]);
}
